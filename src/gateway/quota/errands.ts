// What a meter's alarm does outside: asks the upstream about jobs, pays debts, delivers webhooks, tells the network of ends.
import { type Config, readConfig } from "../../config.ts";
import { limits } from "../../contract/limits.ts";
import { isFinal } from "../../contract/states.ts";
import type { Send } from "../../wire/webhook.ts";
import { keepResult, keptBytes, provenName } from "../kept-result.ts";
import { signingKeysOf } from "../signing.ts";
import { AnswerRoom } from "./answer-room.ts";
import { Chain } from "./chain.ts";
import { deliverWebhook } from "./client-webhook.ts";
import type { Debt } from "./debts.ts";
import type { Endings } from "./endings.ts";
import type { Job } from "./job.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { AskedJob, AskUpstream, DescribeEnd, Ending, UpstreamAnswer } from "./metering.ts";
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
  readonly describeEnd: DescribeEnd;
  readonly send: Send;
}

export class Errands {
  readonly #env: Env;
  readonly #meter: SendingMeter;
  #large: Promise<unknown> = Promise.resolve();
  readonly #room = new AnswerRoom();

  constructor(env: Env, meter: SendingMeter) {
    this.#env = env;
    this.#meter = meter;
  }

  /** One large answer after the other: what is held of each is the memory of the object's neighbours, too. */
  async follow(job: Job): Promise<UpstreamAnswer> {
    const over = Promise.withResolvers<void>();
    const turn = () => {
      const before = this.#large;
      this.#large = Promise.all([before, over.promise]);
      return before.then(() => {});
    };
    try {
      return await this.#room.during(() => this.#follow(job, turn));
    } finally {
      over.resolve();
    }
  }

  async #follow(job: Job, turn: () => Promise<void>): Promise<UpstreamAnswer> {
    const asked = this.#askedOf(job);
    if (!asked) return "unknown";
    const { admission, upstreamId, first } = asked;
    const askedAt = this.#meter.clock();
    const isUnproven = isUnprovenOf(job);
    let text: Uint8Array | undefined;
    const keep = async (passing: ReadableStream<Uint8Array>) => {
      text = await this.#room.hold(passing, keptBytes);
      return text !== undefined;
    };
    const asking = this.#meter.ask(asked, { turn, keep: isUnproven ? undefined : keep });
    const answer = await asking.catch(() => "unreachable" as const);
    const now = this.#meter.clock();
    if (typeof answer === "object")
      await this.#settleAnswer(answer, first, { admission, upstreamId, askedAt, isUnproven }, text, now);
    if (answer === "unknown") this.#meter.endings.forget({ admission, upstreamId }, now);
    /** It was the last question: whatever is not known by now is assumed. */
    if (job.expiresAt <= askedAt) this.#meter.endings.assume(admission, now);
    return answer;
  }

  #askedOf(job: Job): AskedJob | undefined {
    const { model, upstreamId, owner, admission } = job;
    const first = new Chain(this.#meter.stores).firstOf(job);
    return upstreamId === null ? undefined : { model, upstreamId, owner, admission, first };
  }

  async #settleAnswer(
    answer: Exclude<Awaited<ReturnType<AskUpstream>>, string>,
    first: string,
    asked: Pick<Ending, "admission" | "upstreamId" | "askedAt" | "isUnproven">,
    text: Uint8Array | undefined,
    now: number,
  ): Promise<void> {
    const { status, costMicroUsd, completedAt, body, isTaken } = answer;
    const told = isTaken ? text : body;
    // It may be another's job: who has its handle may read it, and nobody is told.
    const media = asked.isUnproven ? undefined : answer.media;
    // A list of the owner's jobs names a retry by its own admission, too.
    const names = asked.isUnproven ? [provenName(asked)] : [...new Set([first, asked.admission])];
    const unkept = told === undefined ? [] : await this.#unkept(names, told);
    const { wantsNotice, admission } = this.#meter.endings.settle(
      { ...asked, status, costMicroUsd, seenAt: now, completedAt, media },
      now,
    );
    if (wantsNotice && told !== undefined) this.#meter.endings.notify(admission, told, now);
    if (told !== undefined) this.#oweResults(names, unkept, told, now);
  }

  /** Those whose result KV has not taken. */
  async #unkept(names: readonly string[], body: string | Uint8Array): Promise<string[]> {
    const kept = await Promise.all(names.map((name) => keepResult(this.#env.IMAGES, name, body)));
    return names.filter((_, at) => !kept[at]);
  }

  /** What KV has is not followed by an older answer that was owed. */
  #oweResults(names: readonly string[], unkept: readonly string[], body: string | Uint8Array, now: number): void {
    const { debts } = this.#meter.stores;
    const kept = names.filter((name) => !unkept.includes(name) && debts.owes(name, "result"));
    if (unkept.length + kept.length === 0) return;
    this.#meter.stores.transaction(() => {
      for (const name of unkept) debts.oweResult(name, body, now);
      for (const name of kept) debts.pay(name, "result");
    });
  }

  /** What cannot be paid now is due again. */
  async pay(debt: Debt): Promise<void> {
    const { stores } = this.#meter;
    const { admission, kind } = debt;
    const isPaid = await this.#isPaid(debt);
    if (isPaid) stores.transaction(() => stores.debts.pay(admission, kind));
  }

  #isPaid(debt: Debt): Promise<boolean> {
    if (debt.kind === "result") return this.#keepOwed(debt);
    return debt.kind === "webhook" ? this.#bringBody(debt) : this.#keepUntold(debt);
  }

  /** Its owner has not asked: the answer is kept before the upstream forgets it. */
  async #keepUntold(debt: Debt): Promise<boolean> {
    const job = this.#meter.stores.jobs.find(debt.admission);
    return !job || this.#isTooLate(debt) || isOver(await this.follow(job));
  }

  /** By then nothing of it is kept any more. */
  #isTooLate({ since }: Debt): boolean {
    return this.#meter.clock() >= since + limits.mediaLifetimeMs;
  }

  async #keepOwed(debt: Debt): Promise<boolean> {
    const body = this.#meter.stores.debts.result(debt.admission);
    return body === undefined || this.#isTooLate(debt) || (await this.#unkept([debt.admission], body)).length === 0;
  }

  /** Of an end that somebody saw and did not tell, or that had to be assumed. Where nobody can say more, its status is told. */
  async #bringBody(debt: Debt): Promise<boolean> {
    const { admission } = debt;
    const { stores, endings, describeEnd, clock } = this.#meter;
    const job = stores.jobs.find(admission);
    if (!job || job.webhook === null || job.noticed === 1) return true;
    const answer = await this.follow(job);
    const seen = stores.jobs.find(admission);
    if (!seen || seen.noticed === 1) return true;
    // It may be another's job, whose handle is for nobody.
    if (isUnprovenOf(seen)) return this.#isTooLate(debt);
    const asked = this.#askedOf(seen);
    if (asked && seen.status !== null && (isOver(answer) || this.#isTooLate(debt)))
      endings.notify(admission, describeEnd(asked, seen.status), clock());
    return false;
  }

  async tellNetwork(end: OwedEnd): Promise<void> {
    const told = await this.#meter.network.tell(end).then(
      () => true,
      () => false,
    );
    if (told) this.#meter.stores.transaction(() => this.#meter.stores.networkEnds.told(end));
  }

  /** Whether it was received. */
  async deliver({ admission: id, url }: Notice): Promise<boolean> {
    const body = this.#meter.stores.outbox.body(id);
    const { webhookHosts: hosts, secrets } = await this.#signing();
    return deliverWebhook({ id, url, body }, { secrets, hosts, send: this.#meter.send, now: this.#meter.clock() });
  }

  async #signing() {
    const config = configOf(this.#env);
    return { webhookHosts: config.webhookHosts, secrets: signingKeysOf(config).webhookSecrets() };
  }
}

/** Asked again, the upstream says nothing more. */
function isOver(answer: UpstreamAnswer): boolean {
  return answer === "unknown" || (typeof answer === "object" && isFinal(answer.status));
}

/** Nobody but a notice has named its id. */
function isUnprovenOf({ boundAt, guessed, retryOf }: Job): boolean {
  return (boundAt === null || guessed === 1) && retryOf === null;
}

function configOf(env: Env): Config {
  const reading = readConfig(env);
  if (!reading.ok) throw new Error("misconfigured");
  return reading.config;
}
