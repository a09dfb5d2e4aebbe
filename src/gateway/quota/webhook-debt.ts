// What is owed of a client's webhook from its job's end on: first its body, and then its input, which the webhook of a
// retry would carry too.
import { limits } from "../../contract/limits.ts";
import type { Debts } from "./debts.ts";
import { mayBeRetriedUntil } from "./ending-rules.ts";
import type { Job } from "./job.ts";
import type { Outbox } from "./outbox.ts";

/** How long a webhook's body may take before the meter asks for it. */
const bringMs = 10_000;
/** The same after an assumed end: the true answer may still come. */
const truthMs = 60_000;

interface Stores {
  readonly debts: Debts;
  readonly outbox: Outbox;
}

/**
 * The job has ended: the request that saw the end brings the webhook's body in a moment. Of a job without an id there is
 * nothing to tell until one is known, as long as the upstream would keep it.
 */
export function oweWebhook({ debts, outbox }: Stores, job: Job, now: number): void {
  const { admission, webhook, upstreamId, assumed } = job;
  if (webhook === null) return;
  if (upstreamId !== null) debts.owe(admission, "webhook", now, now + (assumed ? truthMs : bringMs));
  else if (outbox.hasInput(admission)) debts.owe(admission, "input", now, now + limits.runRetentionMs);
}

/** The body is here, to be sent from now on. */
export function bringWebhook(
  { debts, outbox }: Stores,
  job: Job & { readonly webhook: string },
  body: string | Uint8Array,
  now: number,
): void {
  const { admission, webhook } = job;
  const hasInput = outbox.add(admission, webhook, body, now);
  debts.pay(admission, "webhook");
  if (!hasInput) return;
  const retryUntil = mayBeRetriedUntil(job);
  if (retryUntil > now) debts.owe(admission, "input", now, retryUntil);
  else outbox.forgetInput(admission);
}
