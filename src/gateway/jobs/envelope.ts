// A job request at the gateway's door: checked once, whole or as it flows, and what goes upstream in its place.
import * as z from "zod";
import { jobRequestSchema } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import { describeFaults, Problem } from "../../errors.ts";
import { type ModelInput, Unread } from "../../models/model.ts";
import { mayMultiply } from "../../models/multipliers.ts";
import { bodyProblem } from "../../wire/body-problem.ts";
import { type Member, type RequestSummary, scanRequest } from "../../wire/request-scan.ts";
import { isWebhookName } from "../../wire/webhook-name.ts";
import { refuseTarget } from "../../wire/webhook-target.ts";
import type { Amendment } from "../quota/metering.ts";
import { type LargeBody, parseBody, wholeBytes } from "../request-body.ts";
import { readDigest } from "./body-digest.ts";
import { LastByte } from "./last-byte.ts";
import type { Upload } from "./metered.ts";
import { measureAsItPasses } from "./passing-body.ts";
import type { Target } from "./target.ts";

/** What must be known before the meter is asked. */
export interface Envelope {
  /** Defaults filled in; undefined where the body is not held, or nobody knows the endpoint's input. */
  readonly input: ModelInput | undefined;
  readonly reserveMicroUsd: number;
  readonly webhook: string | undefined;
  readonly ttlMs: number;
  /** Only the input reaches the upstream: another request with the same input asks for the same. */
  readonly isInputAlone: boolean;
  /** How long the body is: of a large one as long as it says, or may be. */
  readonly statedBytes: number;
  /** What an idempotency key stands for: all of a small body. Of a large one it is the beginning, and then its digest. */
  readonly bytes: Uint8Array;
  /** Reads a large body to its end instead of relaying it; a small one has none. */
  readonly digest?: () => Promise<string>;
  /** False where the gateway's webhook would make the body longer than the upstream takes. */
  readonly hasRoomFor: (webhook: string) => boolean;
  /** What goes upstream, with the gateway's webhook in place of the client's. */
  readonly relayed: (webhook: string | undefined, passing: Passing) => Relayed;
}

/** How a large body passes. */
export interface Passing {
  /** Its digest is wanted too, which costs time. */
  readonly digested: boolean;
  /** Called with what it turned out to ask for before its last byte is sent; a Problem that it throws cuts the body off. */
  readonly accept: (passed: Passed) => Promise<void>;
}

export type Passed = Omit<Amendment, "terms">;

export interface Relayed {
  readonly body: BodyInit;
  /** Of a body that streams. */
  readonly upload?: Upload;
}

export interface Rules {
  readonly target: Target;
  readonly webhookHosts: readonly string[];
}

export function wholeEnvelope(bytes: Uint8Array, rules: Rules): Envelope {
  const { target } = rules;
  const { request, input } = check(parseBody(bytes), rules);
  const { webhook } = request;
  const others = Object.fromEntries(Object.entries(request).filter(([name]) => !isWebhookName(name)));
  return {
    input,
    reserveMicroUsd: input && target.model ? target.model.reserve(input) : target.maxMicroUsd,
    webhook,
    ttlMs: request.policy?.ttl ?? limits.ttlMs.default,
    isInputAlone: Object.keys(others).every((name) => name === "input"),
    statedBytes: bytes.byteLength,
    bytes,
    hasRoomFor: () => true,
    relayed: (own) => ({ body: JSON.stringify(own === undefined ? others : { ...others, webhook: own }) }),
  };
}

/** Admitted at the least that its model can cost, and for the longest time; amended when its last byte is known. */
export function largeEnvelope(body: LargeBody, rules: Rules): Envelope {
  const { model, maxMicroUsd } = rules.target;
  return {
    input: undefined,
    reserveMicroUsd: model ? model.leastPrice : maxMicroUsd,
    webhook: undefined,
    ttlMs: limits.ttlMs.max,
    isInputAlone: false,
    statedBytes: body.length ?? body.limitBytes,
    bytes: body.source.head.subarray(0, wholeBytes),
    digest: () => readDigest(body),
    hasRoomFor: (webhook) => (body.length ?? 0) + noticeMember(webhook).byteLength <= body.limitBytes,
    relayed: (own, passing) => relayLarge(body, rules, own, passing),
  };
}

const encoder = new TextEncoder();

function relayLarge(body: LargeBody, rules: Rules, own: string | undefined, passing: Passing): Relayed {
  const lastByte = new LastByte();
  const passed = measureAsItPasses(body.source, passing.digested);
  const { stream, done } = scanRequest<Problem>({
    ...body,
    source: passed.source,
    inject: own === undefined ? new Uint8Array() : noticeMember(own),
    verdict: async (summary) => {
      try {
        const { request, reserveMicroUsd } = checkSummary(summary, rules);
        await passing.accept({
          reserveMicroUsd,
          inputBytes: passed.bytes(),
          ttlMs: request.policy?.ttl ?? limits.ttlMs.default,
          webhook: request.webhook,
          digest: await passed.digest?.(),
        });
        return lastByte.send() ? undefined : streamedProblem("sink-gone", body.limitBytes);
      } catch (error) {
        if (error instanceof Problem) return error;
        throw error;
      }
    },
  });
  const sent = done.then((outcome) => {
    if (outcome.accepted) return;
    throw outcome.fault === "refused" ? outcome.refusal : streamedProblem(outcome.fault, body.limitBytes);
  });
  return { body: stream, upload: { sent, cut: () => lastByte.cut() } };
}

function noticeMember(own: string): Uint8Array {
  return encoder.encode(`"webhook":${JSON.stringify(own)},`);
}

const shapeFaults: Record<string, string> = {
  "no-input": "input: expected an object",
  "member-too-large": "policy, webhook or s3Config: is too large",
  "too-many-members": "input: has too many members",
};

function streamedProblem(fault: string, limitBytes: number): Problem {
  if (fault === "sink-gone") return new Problem("UPSTREAM_UNREACHABLE", "The model service stopped reading.");
  const shape = shapeFaults[fault];
  return shape ? new Problem("INVALID_REQUEST", shape) : bodyProblem(fault as "not-json", limitBytes);
}

/** A member that was too large to be read is held to nothing, and counts in the price by its size. */
function checkSummary({ input, isRepeated, ...outer }: RequestSummary, rules: Rules) {
  const members = [...input].map(([name, member]): [string, unknown] => [name, valueIn(member)]);
  const checked = check({ ...outer, input: Object.fromEntries(members) }, rules);
  const { target } = rules;
  const price = isRepeated ? target.maxMicroUsd : priceOf(checked.input, target);
  return { request: checked.request, reserveMicroUsd: price };
}

function valueIn({ kind, bytes, value }: Member): unknown {
  return value === undefined ? new Unread(kind, bytes) : value;
}

/** What says how much is to be made, and was not read, means the highest price. */
function priceOf(input: ModelInput | undefined, { model, maxMicroUsd }: Target): number {
  if (!model || !input) return maxMicroUsd;
  const isUnread = Object.entries(input).some(
    ([name, value]) => value instanceof Unread && (value.kind === "number" || mayMultiply(name, value.kind)),
  );
  return isUnread ? model.maxPrice : model.reserve(input);
}

/** Faults carry their path from the body's root. */
function check(value: unknown, { target, webhookHosts }: Rules) {
  const checked = jobRequestSchema.safeParse(value);
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  const { webhook } = checked.data;
  const refused = webhook === undefined ? undefined : refuseTarget(webhook, webhookHosts);
  if (refused) throw new Problem("INVALID_REQUEST", `webhook: the URL ${refused}`);
  return { request: checked.data, input: checkInput(checked.data.input, target) };
}

function checkInput(input: Record<string, unknown>, { model }: Target): ModelInput | undefined {
  if (!model) return undefined;
  const unread = Object.keys(input).filter((name) => input[name] instanceof Unread);
  const checked = z.safeParse(unread.length === 0 ? model.input : model.inputWithout(unread), input);
  if (checked.success) return checked.data;
  const placed = checked.error.issues.map(({ path, message }) => ({ path: ["input", ...path], message }));
  throw new Problem("INVALID_REQUEST", describeFaults(placed));
}
