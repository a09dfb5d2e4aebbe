// Streams a JSON body on. Its last byte waits until `verdict` has judged what was read of it.
import type { ByteSource } from "./byte-reader.ts";
import type { JsonListener } from "./json-listener.ts";
import { type Edit, type RelayFault, relayJson } from "./json-relay.ts";

export interface VerdictScan<Summary, Refusal> {
  readonly source: ReadableStream<Uint8Array> | ByteSource;
  /** As stated by Content-Length; undefined for a chunked body. */
  readonly length?: number | undefined;
  readonly limitBytes: number;
  readonly bufferBytes?: number | undefined;
  /** Says what is wrong with the body, undefined when nothing is. */
  verdict(summary: Summary): Refusal | undefined | Promise<Refusal | undefined>;
}

/** Listens to the body, and says what was read of it. */
export interface Summarizing<Summary, Fault> extends JsonListener {
  /** Enough to refuse the body before its end. */
  readonly fault: Fault | undefined;
  readonly edits: Edit[];
  summary(): Summary;
}

export type Outcome<Summary, Fault, Refusal> =
  | { readonly accepted: true; readonly summary: Summary }
  | { readonly accepted: false; readonly fault: Exclude<RelayFault, "stopped"> | Fault }
  | { readonly accepted: false; readonly fault: "refused"; readonly refusal: Refusal };

/** Rejects only with what `verdict` itself threw. */
export async function relayForVerdict<Summary, Fault, Refusal>(
  scan: VerdictScan<Summary, Refusal>,
  output: WritableStream<Uint8Array>,
  listener: Summarizing<Summary, Fault>,
): Promise<Outcome<Summary, Fault, Refusal>> {
  let verdict: { refusal: Refusal | undefined } | { thrown: unknown } | undefined;
  const fault = await relayJson({
    source: scan.source,
    output,
    listener,
    edits: listener.edits,
    limitBytes: scan.limitBytes,
    length: scan.length,
    bufferBytes: scan.bufferBytes,
    stopped: () => listener.fault !== undefined,
    accept: async () => {
      try {
        verdict = { refusal: await scan.verdict(listener.summary()) };
        return verdict.refusal === undefined;
      } catch (thrown) {
        verdict = { thrown };
        return false;
      }
    },
  });
  if (fault === undefined) return { accepted: true, summary: listener.summary() };
  if (fault !== "stopped") return { accepted: false, fault };
  if (verdict === undefined) return { accepted: false, fault: listener.fault ?? "not-json" };
  if ("thrown" in verdict) throw verdict.thrown;
  return { accepted: false, fault: "refused", refusal: verdict.refusal as Refusal };
}
