// A job request at the gateway's door: bounded, parsed and checked once, and what goes upstream in its place.
import * as z from "zod";
import { jobRequestSchema } from "../../contract/job-request.ts";
import { limits } from "../../contract/limits.ts";
import { describeFaults, Problem } from "../../errors.ts";
import type { ModelInput } from "../../models/model.ts";
import { parseJson, readWhole } from "../../wire/body.ts";
import { refuseTarget } from "../../wire/webhook-target.ts";
import type { Target } from "./target.ts";

export interface Envelope {
  /** Defaults filled in; undefined for an endpoint whose input nobody knows. */
  readonly input: ModelInput | undefined;
  readonly reserveMicroUsd: number;
  readonly webhook: string | undefined;
  readonly ttlMs: number;
  readonly hasS3Config: boolean;
  /** Equal for equal bytes: what an idempotency key stands for. */
  readonly bytes: Uint8Array;
  /** What goes upstream: the client's request with the gateway's webhook in place of the client's. */
  readonly relayed: (webhook: string | undefined) => string;
}

export async function readEnvelope(
  request: Request,
  operation: "run" | "runsync",
  target: Target,
  webhookHosts: readonly string[],
): Promise<Envelope> {
  const limit = operation === "run" ? limits.runPayloadBytes : limits.runsyncPayloadBytes;
  const bytes = await readWhole(request, limit);
  const checked = jobRequestSchema.safeParse(parseJson(bytes));
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  const { webhook, ...others } = checked.data;
  const refused = webhook === undefined ? undefined : refuseTarget(webhook, webhookHosts);
  if (refused) throw new Problem("INVALID_REQUEST", `webhook: the URL ${refused}`);
  const input = checkInput(others.input, target);
  return {
    input,
    reserveMicroUsd: input && target.model ? target.model.reserve(input) : target.maxMicroUsd,
    webhook,
    ttlMs: others.policy?.ttl ?? limits.ttlMs.default,
    hasS3Config: others.s3Config !== undefined,
    bytes,
    relayed: (own) => JSON.stringify(own === undefined ? others : { ...others, webhook: own }),
  };
}

/** Faults carry their path from the body's root. */
function checkInput(input: Record<string, unknown>, { model }: Target): ModelInput | undefined {
  if (!model) return undefined;
  const checked = z.safeParse(model.input, input);
  if (checked.success) return checked.data;
  const issues = checked.error.issues.map(({ path, message }) => ({ path: ["input", ...path], message }));
  throw new Problem("INVALID_REQUEST", describeFaults(issues));
}
