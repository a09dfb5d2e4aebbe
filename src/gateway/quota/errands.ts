// What a meter's alarm does outside: asks the upstream about jobs, delivers webhooks, tells the network of ends.
import { type Config, readConfig } from "../../config.ts";
import type { Send } from "../../wire/webhook.ts";
import { keepResult } from "../kept-result.ts";
import { signingKeysOf } from "../signing.ts";
import { deliverWebhook } from "./client-webhook.ts";
import type { Endings } from "./endings.ts";
import type { Job } from "./job.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { AskUpstream, Ending, UpstreamAnswer } from "./metering.ts";
import type { Network } from "./network.ts";
import type { OwedEnd } from "./network-ends.ts";
import type { Notice } from "./outbox.ts";

/** The meter whose errands they are. */
export interface SendingMeter {
  readonly stores: MeterStores;
  readonly endings: Endings;
  readonly network: Network;
  readonly clock: () => number;
  readonly ask: AskUpstream;
  readonly send: Send;
}

export class Errands {
  readonly #env: Env;
  readonly #meter: SendingMeter;

  constructor(env: Env, meter: SendingMeter) {
    this.#env = env;
    this.#meter = meter;
  }

  async follow(job: Job): Promise<void> {
    const { model, upstreamId, owner, admission } = job;
    if (upstreamId === null) return;
    const askedAt = this.#meter.clock();
    const answer = await this.#meter.ask({ model, upstreamId, owner, admission }).catch(() => "unreachable" as const);
    const now = this.#meter.clock();
    const isUnproven = (job.boundAt === null || job.guessed === 1) && job.retryOf === null;
    if (typeof answer === "object")
      await this.#settleAnswer(answer, { admission, upstreamId, askedAt, isUnproven }, now);
    if (answer === "unknown") this.#meter.endings.forget({ admission, upstreamId }, now);
    /** It was the last question: whatever is not known by now is assumed. */
    if (job.expiresAt <= askedAt) this.#meter.endings.assume(admission, now);
  }

  async #settleAnswer(
    answer: Exclude<Awaited<ReturnType<AskUpstream>>, string>,
    asked: Pick<Ending, "admission" | "upstreamId" | "askedAt" | "isUnproven">,
    now: number,
  ): Promise<void> {
    const { status, costMicroUsd, completedAt, media, body } = asked.isUnproven ? withoutOutput(answer) : answer;
    if (body !== undefined) await keepResult(this.#env.IMAGES, asked.admission, body);
    const { wantsNotice, admission } = this.#meter.endings.settle(
      { ...asked, status, costMicroUsd, seenAt: now, completedAt, media },
      now,
    );
    if (wantsNotice && body !== undefined) this.#meter.endings.notify(admission, body, now);
  }

  async tellNetwork(end: OwedEnd): Promise<void> {
    const told = await this.#meter.network.tell(end).then(
      () => true,
      () => false,
    );
    if (told) this.#meter.stores.transaction(() => this.#meter.stores.networkEnds.told(end));
  }

  async deliver(notice: Notice): Promise<void> {
    const { admission: id, url } = notice;
    const body = this.#meter.stores.outbox.body(id);
    const { webhookHosts: hosts, secrets } = await this.#signing();
    const received = await deliverWebhook(
      { id, url, body },
      { secrets, hosts, send: this.#meter.send, now: this.#meter.clock() },
    );
    this.#meter.stores.transaction(() => this.#meter.stores.outbox.settle(notice, received, this.#meter.clock()));
  }

  async #signing() {
    const config = configOf(this.#env);
    return { webhookHosts: config.webhookHosts, secrets: await signingKeysOf(config).webhookSecrets() };
  }
}

function configOf(env: Env): Config {
  const reading = readConfig(env);
  if (!reading.ok) throw new Error("misconfigured");
  return reading.config;
}

/** It may be another's job: nothing of what it made is kept or told. */
function withoutOutput({
  media: _,
  body: __,
  ...said
}: Exclude<UpstreamAnswer, string>): Exclude<UpstreamAnswer, string> {
  return said;
}
