// A job request at the gateway's door: checked once, whole or as it flows, and what goes upstream in its place.
import * as z from "zod";
import { type JobRequest, jobRequestSchema } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import { describeFaults, Problem } from "../../errors.ts";
import type { ModelInput } from "../../models/model.ts";
import { bodyProblem } from "../../wire/body-problem.ts";
import type { Kind } from "../../wire/json-listener.ts";
import { type Member, type RequestSummary, scanRequest } from "../../wire/request-scan.ts";
import { refuseTarget } from "../../wire/webhook-target.ts";
import { type LargeBody, parseBody, wholeBytes } from "../request-body.ts";
import { digestAsItPasses, readDigest } from "./body-digest.ts";
import { LastByte } from "./last-byte.ts";
import type { Target } from "./target.ts";

/** What must be known before the meter is asked. */
export interface Envelope {
  /** Defaults filled in; undefined where the body is not held, or nobody knows the endpoint's input. */
  readonly input: ModelInput | undefined;
  readonly reserveMicroUsd: number;
  readonly webhook: string | undefined;
  readonly ttlMs: number;
  readonly hasS3Config: boolean;
  /** What an idempotency key stands for: all of a small body. Of a large one it is the beginning, and then its digest. */
  readonly bytes: Uint8Array;
  /** Reads a large body to its end instead of relaying it; a small one has none. */
  readonly digest?: () => Promise<string>;
  /** What goes upstream, with the gateway's webhook in place of the client's. */
  readonly relayed: (webhook: string | undefined, passing: Passing) => Relayed;
}

/** How a large body passes. */
export interface Passing {
  /** Its digest is wanted too, which costs time. */
  readonly digested: boolean;
  /** Called with what it asks for before its last byte is sent; a Problem that it throws cuts the body off. */
  readonly accept: (request: JobRequest, digest: string | undefined) => Promise<void>;
}

export interface Relayed {
  readonly body: BodyInit;
  /** Settles when all of it was checked and sent: with what the client asked for, or with the Problem that cut it off. */
  readonly checked?: Promise<JobRequest>;
  /** Sends no more of a large body: whether that came before its last byte, so that nobody has all of it. */
  readonly cut?: () => boolean;
}

export interface Rules {
  readonly target: Target;
  readonly webhookHosts: readonly string[];
}

export function wholeEnvelope(bytes: Uint8Array, rules: Rules): Envelope {
  const { target } = rules;
  const { request, input } = check(parseBody(bytes), rules, () => true);
  const { webhook, ...others } = request;
  return {
    input,
    reserveMicroUsd: input && target.model ? target.model.reserve(input) : target.maxMicroUsd,
    webhook,
    ttlMs: request.policy?.ttl ?? limits.ttlMs.default,
    hasS3Config: request.s3Config !== undefined,
    bytes,
    relayed: (own) => ({ body: JSON.stringify(own === undefined ? others : { ...others, webhook: own }) }),
  };
}

/** Admitted at the model's highest price and for the longest time: what it asks for is known when the last byte is. */
export function largeEnvelope(body: LargeBody, rules: Rules): Envelope {
  return {
    input: undefined,
    reserveMicroUsd: rules.target.maxMicroUsd,
    webhook: undefined,
    ttlMs: limits.ttlMs.max,
    hasS3Config: false,
    bytes: body.source.head.subarray(0, wholeBytes),
    digest: () => readDigest(body),
    relayed: (own, passing) => relayLarge(body, rules, own, passing),
  };
}

const encoder = new TextEncoder();

function relayLarge(body: LargeBody, rules: Rules, own: string | undefined, passing: Passing): Relayed {
  let request: JobRequest | undefined;
  const lastByte = new LastByte();
  const digested = passing.digested ? digestAsItPasses(body.source) : undefined;
  const { stream, done } = scanRequest<Problem>({
    ...body,
    source: digested?.source ?? body.source,
    inject: noticeMember(body, own),
    verdict: async (summary) => {
      try {
        request = checkSummary(summary, rules);
        await passing.accept(request, await digested?.digest());
        return lastByte.send() ? undefined : streamedProblem("sink-gone", body.limitBytes);
      } catch (error) {
        if (error instanceof Problem) return error;
        throw error;
      }
    },
  });
  const checked = done.then((outcome) => {
    if (outcome.accepted && request) return request;
    if (!outcome.accepted && outcome.fault === "refused") throw outcome.refusal;
    throw streamedProblem(outcome.accepted ? "not-json" : outcome.fault, body.limitBytes);
  });
  return { body: stream, checked, cut: () => lastByte.cut() };
}

/** Not in a body that it would make longer than the upstream takes: of that job the meter's alarm learns the end. */
function noticeMember({ length = 0, limitBytes }: LargeBody, own: string | undefined): Uint8Array {
  const member = encoder.encode(own === undefined ? "" : `"webhook":${JSON.stringify(own)},`);
  return length + member.byteLength > limitBytes ? new Uint8Array() : member;
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

/** A member that was too large to be read counts as the kind of value that it is, and is held to nothing else. */
function checkSummary({ input, ...outer }: RequestSummary, rules: Rules): JobRequest {
  const read = new Map([...input].map(([name, member]) => [name, valueIn(member)]));
  const isRead = (name: PropertyKey | undefined) => input.get(String(name))?.value !== undefined;
  return check(
    { ...outer, input: Object.fromEntries(read) },
    rules,
    (path) => path.length === 0 || isRead(path[0]) || !input.has(String(path[0])),
  ).request;
}

const standIns: Record<Kind, unknown> = { object: {}, array: [], string: "", number: 0, boolean: false, null: null };

function valueIn({ kind, value }: Member): unknown {
  return value === undefined ? standIns[kind] : value;
}

type Counts = (path: readonly PropertyKey[]) => boolean;

/** Faults carry their path from the body's root. */
function check(value: unknown, { target, webhookHosts }: Rules, counts: Counts) {
  const checked = jobRequestSchema.safeParse(value);
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  const { webhook } = checked.data;
  const refused = webhook === undefined ? undefined : refuseTarget(webhook, webhookHosts);
  if (refused) throw new Problem("INVALID_REQUEST", `webhook: the URL ${refused}`);
  return { request: checked.data, input: checkInput(checked.data.input, target, counts) };
}

function checkInput(input: Record<string, unknown>, { model }: Target, counts: Counts): ModelInput | undefined {
  if (!model) return undefined;
  const checked = z.safeParse(model.input, input);
  if (checked.success) return checked.data;
  const issues = checked.error.issues.filter(({ path }) => counts(path));
  if (issues.length === 0) return undefined;
  const placed = issues.map(({ path, message }) => ({ path: ["input", ...path], message }));
  throw new Problem("INVALID_REQUEST", describeFaults(placed));
}
