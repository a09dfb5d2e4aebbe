// A job request: checked once, whole or as it streams, and turned into the body that goes upstream.
import * as z from "zod";
import { type JobRequest, jobRequestSchema } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import { describeFaults, Problem } from "../../errors.ts";
import { bodyProblem } from "../../http/body-problem.ts";
import { refuseTarget } from "../../http/webhook-target.ts";
import { type Member, type RequestSummary, scanRequest } from "../../json/request-scan.ts";
import { isWebhookName } from "../../json/webhook-name.ts";
import { type ModelInput, Unread } from "../../models/model.ts";
import { mayMultiply } from "../../models/multipliers.ts";
import type { Amendment } from "../quota/metering.ts";
import { findLinkedMedia, type LinkedMedia, refusedAt } from "../uploads/media-inputs.ts";
import type { OwnLinks } from "../uploads/own-links.ts";
import { readDigest } from "./body-digest.ts";
import type { CalledModel } from "./called-model.ts";
import { CommitGate } from "./commit-gate.ts";
import type { Upload } from "./metered.ts";
import { measureAsItPasses } from "./passing-body.ts";
import { type LargeBody, parseBody, wholeBytes } from "./request-body.ts";

/** What must be known before the meter is asked. */
export interface Envelope {
  /** The input with defaults filled in. Undefined if the body is not held, or the endpoint is not in the catalog. */
  readonly input: ModelInput | undefined;
  readonly reserveMicroUsd: number;
  readonly webhook: string | undefined;
  /** What the client's webhook is to carry; undefined where it asked for none, or it is too large to be kept. */
  readonly webhookInput?: string | undefined;
  readonly ttlMs: number;
  /**
   * The job writes its output into a bucket of the caller's (`s3Config`). For a large body this is known only after it
   * was sent.
   */
  readonly usesBucket: () => boolean;
  /** Only the input reaches the upstream: another request with the same input asks for the same. */
  readonly isInputAlone: boolean;
  /** How long the body is: of a large one as long as it says, or may be. */
  readonly statedBytes: number;
  /** What an idempotency key is compared by: all of a small body, or the first bytes of a large one. */
  readonly bytes: Uint8Array;
  /** Reads a large body to its end instead of relaying it; a small one has none. */
  readonly digest?: () => Promise<string>;
  /** Links of the gateway's own among the input's media; none of a large body, where they stand as they are. */
  readonly linkedMedia: readonly LinkedMedia[];
  /** False where the gateway's webhook would make the body longer than the upstream takes. */
  readonly hasRoomFor: (webhook: string) => boolean;
  /** What goes upstream, with the gateway's webhook in place of the client's. */
  readonly relayed: (webhook: string | undefined, passing: Passing) => Relayed;
}

/** How a large body passes. */
export interface Passing {
  /** Its digest is wanted too, which costs time. */
  readonly digested: boolean;
  /**
   * Called before the last byte is sent, with what the whole body asks for. If it throws a Problem, the body is cut
   * off.
   */
  readonly accept: (measured: CheckedBody) => Promise<void>;
}

export type CheckedBody = Omit<Amendment, "terms">;

export interface Relayed {
  readonly body: BodyInit;
  /** Of a body that streams. */
  readonly upload?: Upload;
}

export interface Rules {
  readonly target: CalledModel;
  readonly webhookHosts: readonly string[];
  readonly ownLinks: OwnLinks;
}

export function wholeEnvelope(bytes: Uint8Array, rules: Rules): Envelope {
  const { target } = rules;
  const { request, input, linkedMedia } = check(parseBody(bytes), rules);
  const { webhook } = request;
  const others = withoutWebhook(request);
  return {
    input,
    reserveMicroUsd: input && target.model ? target.model.reserve(input) : target.maxMicroUsd,
    webhook,
    webhookInput: webhook === undefined ? undefined : keptInput(request.input),
    ttlMs: request.policy?.ttl ?? limits.ttlMs.default,
    usesBucket: () => request.s3Config !== undefined,
    isInputAlone: Object.keys(others).every((name) => name === "input"),
    statedBytes: bytes.byteLength,
    bytes,
    linkedMedia,
    hasRoomFor: () => true,
    relayed: (own) => ({ body: JSON.stringify(own === undefined ? others : { ...others, webhook: own }) }),
  };
}

function withoutWebhook(request: JobRequest): Record<string, unknown> {
  const others: Record<string, unknown> = { ...request };
  for (const name in others) if (isWebhookName(name)) delete others[name];
  return others;
}

const keptInputBytes = 64 * 1024;

function keptInput(input: object): string | undefined {
  const text = JSON.stringify(input);
  return encoder.encode(text).byteLength <= keptInputBytes ? text : undefined;
}

/**
 * Admitted at the lowest price of its model and the longest ttl. The meter is given the real ones before the last byte
 * is sent.
 */
export function largeEnvelope(body: LargeBody, rules: Rules): Envelope {
  const { model, maxMicroUsd } = rules.target;
  let usesBucket = false;
  const seeing = (request: JobRequest) => {
    usesBucket = request.s3Config !== undefined;
  };
  return {
    input: undefined,
    reserveMicroUsd: model ? model.leastPrice : maxMicroUsd,
    webhook: undefined,
    ttlMs: limits.ttlMs.max,
    usesBucket: () => usesBucket,
    isInputAlone: false,
    statedBytes: body.length ?? body.limitBytes,
    bytes: body.source.head.subarray(0, wholeBytes),
    digest: () => readDigest(body),
    linkedMedia: [],
    hasRoomFor: (webhook) => (body.length ?? 0) + noticeMember(webhook).byteLength <= body.limitBytes,
    relayed: (own, passing) => relayLarge(body, rules, own, { ...passing, seeing }),
  };
}

const encoder = new TextEncoder();

function relayLarge(
  body: LargeBody,
  rules: Rules,
  own: string | undefined,
  passing: Passing & { seeing: (request: JobRequest) => void },
): Relayed {
  const gate = new CommitGate();
  const measured = measureAsItPasses(body.source, passing.digested);
  const { stream, done } = scanRequest<Problem>({
    ...body,
    source: measured.source,
    inject: own === undefined ? new Uint8Array() : noticeMember(own),
    verdict: async (summary) => {
      const { request, reserveMicroUsd } = checkSummary(summary, rules);
      passing.seeing(request);
      await passing.accept({
        reserveMicroUsd,
        inputBytes: measured.bytes(),
        ttlMs: request.policy?.ttl ?? limits.ttlMs.default,
        webhook: request.webhook,
        digest: await measured.digest?.(),
      });
      return gate.tryCommit() ? undefined : streamedProblem("sink-gone", body.limitBytes);
    },
  });
  const sent = done.then((outcome) => {
    if (outcome.accepted) return;
    throw outcome.fault === "refused" ? outcome.refusal : streamedProblem(outcome.fault, body.limitBytes);
  });
  return { body: stream, upload: { sent, cut: () => gate.tryAbort() } };
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

/** A member that is too large to read is not checked. The price counts its size. */
function checkSummary({ input, isRepeated, ...outer }: RequestSummary, rules: Rules) {
  const members = [...input].map(([name, member]): [string, unknown] => [name, valueIn(member)]);
  const checked = check({ ...outer, input: Object.fromEntries(members) }, rules);
  const changed = checked.linkedMedia.find(({ mustChange }) => mustChange);
  if (changed)
    throw refusedAt(
      changed,
      `the model service cannot read this link, and a body above ${wholeBytes} bytes is sent on as it is`,
    );
  const { target } = rules;
  const price = isRepeated ? target.maxMicroUsd : priceOf(checked.input, target);
  return { request: checked.request, reserveMicroUsd: price };
}

function valueIn({ kind, bytes, value }: Member): unknown {
  return value === undefined ? new Unread(kind, bytes) : value;
}

/** If a member that sets the amount of work was too large to read, the highest price is reserved. */
function priceOf(input: ModelInput | undefined, { model, maxMicroUsd }: CalledModel): number {
  if (!model || !input) return maxMicroUsd;
  const isUnread = Object.entries(input).some(
    ([name, value]) => value instanceof Unread && (value.kind === "number" || mayMultiply(name, value.kind)),
  );
  return isUnread ? model.maxPrice : model.reserve(input);
}

/** Faults carry their path from the body's root. */
function check(value: unknown, { target, webhookHosts, ownLinks }: Rules) {
  const checked = jobRequestSchema.safeParse(value);
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  const { webhook } = checked.data;
  const refused = webhook === undefined ? undefined : refuseTarget(webhook, webhookHosts);
  if (refused) throw new Problem("INVALID_REQUEST", `webhook: the URL ${refused}`);
  const input = checkInput(checked.data.input, target);
  const linkedMedia = input && target.model ? findLinkedMedia(input, target.model, ownLinks) : [];
  return { request: checked.data, input, linkedMedia };
}

function checkInput(input: Record<string, unknown>, { model }: CalledModel): ModelInput | undefined {
  if (!model) return undefined;
  const unread = Object.keys(input).filter((name) => input[name] instanceof Unread);
  const checked = z.safeParse(unread.length === 0 ? model.input : model.inputWithout(unread), input);
  if (checked.success) return checked.data;
  const placed = checked.error.issues.map(({ path, message }) => ({ path: ["input", ...path], message }));
  throw new Problem("INVALID_REQUEST", describeFaults(placed));
}
