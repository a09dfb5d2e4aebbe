// The gateway's own links in a job's input, as they go upstream.
import { limits } from "../../contract/limits.ts";
import { linkBody } from "../uploads/linked-body.ts";
import { OwnLinks } from "../uploads/own-links.ts";
import { CommitGate } from "./commit-gate.ts";
import type { Envelope, Relayed } from "./envelope.ts";
import type { JobCall } from "./job-call.ts";

export function ownLinksOf({ config, request, exchange }: JobCall): OwnLinks {
  return new OwnLinks(config, request.url, exchange.startedAt);
}

/** Whether its files go upstream in the body, which may be larger for `runsync` than for `run`. */
export function sendsFiles(call: JobCall, { linkedMedia }: Envelope): boolean {
  return linkedMedia.length > 0 && !ownLinksOf(call).areReachable;
}

/** A promise only where a link of ours stands in the input. */
export function withSentLinks(
  call: JobCall,
  operation: "run" | "runsync",
  { linkedMedia }: Envelope,
  relayed: Relayed,
): Relayed | Promise<Relayed> {
  const { body } = relayed;
  return typeof body === "string" && linkedMedia.length > 0 ? sendLinks(call, operation, linkedMedia, body) : relayed;
}

async function sendLinks(
  call: JobCall,
  operation: "run" | "runsync",
  media: Envelope["linkedMedia"],
  given: string,
): Promise<Relayed> {
  const gate = new CommitGate();
  const limitBytes = operation === "run" ? limits.runPayloadBytes : limits.runsyncPayloadBytes;
  const linking = { links: ownLinksOf(call), media, limitBytes, mayEnd: () => gate.tryCommit() };
  const { body, sent } = await linkBody(call, given, linking);
  return sent ? { body, upload: { sent, cut: () => gate.tryAbort() } } : { body };
}
