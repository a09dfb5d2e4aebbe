// The body of an OpenAI call: checked by the schema of its route, priced, and what goes upstream in its place.

import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { describeFaults, Problem } from "../../errors.ts";
import { bodyProblem } from "../../http/body-problem.ts";
import { isObject } from "../../json/is-object.ts";
import { type ObjectSummary, scanObject, type Tail } from "../../json/object-scan.ts";
import { type Fault, readChat, reserveChat } from "../../models/index.ts";
import type { KeyedBody } from "./admit-request.ts";
import { readDigest } from "./body-digest.ts";
import type { CalledModel } from "./called-model.ts";
import { CommitGate } from "./commit-gate.ts";
import type { Passing } from "./envelope.ts";
import type { JobCall } from "./job-call.ts";
import type { Upload } from "./metered.ts";
import { measureAsItPasses } from "./passing-body.ts";
import { type LargeBody, openBody, parseBody, wholeBytes } from "./request-body.ts";

export interface OpenAiBody extends KeyedBody {
  readonly reserveMicroUsd: number;
  /** Of a large body as long as it says, or may be. */
  readonly statedBytes: number;
  readonly relayed: (passing: Passing) => RelayedBody;
}

export interface RelayedBody {
  /** A `GET` has none. */
  readonly body?: Uint8Array | ReadableStream<Uint8Array>;
  /** Of a body that streams. */
  readonly upload?: Upload;
}

export async function openBodyOf({ request, target }: JobCall): Promise<OpenAiBody> {
  const body = await openBody(request, limits.runsyncPayloadBytes);
  return "whole" in body ? wholeBody(body.whole, target) : largeBody(body.large, target);
}

/** Of a route that is read, at the endpoint's stated price. */
export function noBody({ maxMicroUsd }: CalledModel): OpenAiBody {
  return { reserveMicroUsd: maxMicroUsd, bytes: new Uint8Array(), statedBytes: 0, relayed: () => ({}) };
}

const encoder = new TextEncoder();
/** All that is known of a call to an endpoint that the catalog does not know. */
const passthroughSchema = z.looseObject({ stream: z.boolean().nullish() });

function wholeBody(bytes: Uint8Array, target: CalledModel): OpenAiBody {
  const value = parseBody(bytes);
  if (!isObject(value)) throw new Problem("INVALID_REQUEST", "body: expected an object");
  const { reserveMicroUsd, body } = checked(value, bytes, target);
  return { reserveMicroUsd, bytes, statedBytes: bytes.byteLength, relayed: () => ({ body }) };
}

/** What was checked is what is relayed: of a member that is written twice another parser might take the first. */
function checked(value: Record<string, unknown>, bytes: Uint8Array, { model, maxMicroUsd }: CalledModel) {
  if (!model?.tokens) {
    const { error } = passthroughSchema.safeParse(value);
    if (error) throw invalid(error.issues);
    return { reserveMicroUsd: maxMicroUsd, body: bytes };
  }
  const { chat, faults } = readChat(value);
  if (!chat || faults.length > 0) throw invalid(faults);
  const body = encoder.encode(JSON.stringify(chat.stream === true ? withUsage(chat) : chat));
  return { reserveMicroUsd: reserveChat(chat, body.byteLength, model.tokens), body };
}

/**
 * A stream says what it cost only where it is asked to. The client sees the chunk too, as OpenAI documents it: `choices` is
 * empty, `usage` is filled in. Taking it out would mean to hold back and rewrite each event on its way.
 */
function withUsage<T extends { stream_options?: object | null | undefined }>(chat: T): T {
  return { ...chat, stream_options: { ...chat.stream_options, include_usage: true } };
}

/** Admitted at the least that its model can cost; amended when its last byte is known. */
function largeBody(body: LargeBody, target: CalledModel): OpenAiBody {
  return {
    reserveMicroUsd: target.model ? target.model.leastPrice : target.maxMicroUsd,
    statedBytes: body.length ?? body.limitBytes,
    bytes: body.source.head.subarray(0, wholeBytes),
    digest: () => readDigest(body),
    relayed: (passing) => relayLarge(body, target, passing),
  };
}

function relayLarge(body: LargeBody, target: CalledModel, { digested, accept }: Passing): RelayedBody {
  const gate = new CommitGate();
  const measured = measureAsItPasses(body.source, digested);
  const { stream, done } = scanObject<Problem>({
    ...body,
    source: measured.source,
    tail: usageTail(body, target),
    verdict: async (summary) => {
      const reserveMicroUsd = priceOf(summary, target);
      await accept({ reserveMicroUsd, inputBytes: measured.bytes(), digest: await measured.digest?.() });
      return gate.tryCommit() ? undefined : brokenOff("sink-gone", body.limitBytes);
    },
  });
  const sent = done.then((outcome) => {
    if (outcome.accepted) return;
    throw outcome.fault === "refused" ? outcome.refusal : brokenOff(outcome.fault, body.limitBytes);
  });
  return { body: stream, upload: { sent, cut: () => gate.tryAbort() } };
}

/** The caller's other options stay where they fit. */
const longestOptions = 256;

/**
 * The options of a stream go to the end of the body, with the wish for its usage. Not in a body that they would make longer
 * than the upstream takes: that stream is charged for its text.
 */
function usageTail({ length = 0, limitBytes }: LargeBody, { model }: CalledModel): Tail | undefined {
  if (!model?.tokens || length + longestOptions > limitBytes) return undefined;
  return {
    name: "stream_options",
    length: longestOptions,
    member: ({ members }) => {
      if (members.get("stream")?.value !== true) return undefined;
      const asked = withUsage({ stream_options: members.get("stream_options")?.value as object | undefined });
      return [asked, withUsage({})].map(memberOf).find(({ byteLength }) => byteLength <= longestOptions);
    },
  };
}

function memberOf(object: object): Uint8Array {
  return encoder.encode(`,${JSON.stringify(object).slice(1, -1)}`);
}

/** Of a member that was too large to be read only its name is known. */
function priceOf({ members, bytes }: ObjectSummary, { model, maxMicroUsd }: CalledModel): number {
  const all = [...members];
  const unread = new Map(all.filter(([, { value }]) => value === undefined).map(([name, { kind }]) => [name, kind]));
  const read = Object.fromEntries(all.filter(([name]) => !unread.has(name)).map(([name, { value }]) => [name, value]));
  const faults = model?.tokens ? readChat(read, unread).faults : passthroughSchema.safeParse(read).error?.issues;
  if (faults && faults.length > 0) throw invalid(faults);
  return model?.tokens ? reserveChat(read, bytes, model.tokens) : maxMicroUsd;
}

function invalid(faults: readonly Fault[]): Problem {
  return new Problem("INVALID_REQUEST", describeFaults(faults), {}, paramOf(faults[0]?.path ?? []));
}

/** As OpenAI writes it: `messages[0].content`. */
function paramOf(path: readonly PropertyKey[]): string | null {
  if (path.length === 0) return null;
  return path.reduce<string>((whole, part) => {
    if (typeof part === "number") return `${whole}[${part}]`;
    return whole === "" ? String(part) : `${whole}.${String(part)}`;
  }, "");
}

function brokenOff(fault: string, limitBytes: number): Problem {
  switch (fault) {
    case "sink-gone":
      return new Problem("UPSTREAM_UNREACHABLE", "The model service stopped reading.");
    case "no-object":
      return new Problem("INVALID_REQUEST", "body: expected an object");
    case "too-many-members":
      return new Problem("INVALID_REQUEST", "body: has too many members");
    case "repeated":
      return new Problem("INVALID_REQUEST", "body: says a member twice");
    default:
      return bodyProblem(fault as "not-json", limitBytes);
  }
}
