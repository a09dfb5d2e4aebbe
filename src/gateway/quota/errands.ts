// The calls that a meter's alarm makes: it asks the upstream about jobs, pays debts, delivers webhooks, and tells a
// network's meter of ends.
import { type Config, readConfig } from "../../config.ts";
import { limits } from "../../contract/limits.ts";
import { isFinal } from "../../contract/states.ts";
import type { Send } from "../../http/webhook.ts";
import { signingKeysOf } from "../identity/signing.ts";
import { AnswerRoom } from "./answer-room.ts";
import { Chain } from "./chain.ts";
import { deliverWebhook } from "./client-webhook.ts";
import type { Debt } from "./debts.ts";
import type { Endings } from "./endings.ts";
import { isUnproven, type Job, ttlEndsAt } from "./job.ts";
import { dueAt } from "./job-timing.ts";
import { admissionIn, keepResult, keepUnder, keptBytes, provenName, resultNames } from "./kept-result.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Ending } from "./metering.ts";
import type { Network } from "./network.ts";
import type { OwedEnd } from "./network-ends.ts";
import type { OpenJobs } from "./open-jobs.ts";
import type { Notice } from "./outbox.ts";
import { uploadFile } from "./upload-file.ts";
import type { AskedJob, AskUpstream, DescribeEnd, UpstreamAnswer } from "./upstream-poll.ts";

/** The meter whose errands they are. */
export interface SendingMeter {
  readonly stores: MeterStores;
  readonly endings: Endings;
  readonly openJobs: OpenJobs;
  readonly network: Network;
  readonly clock: () => number;
  readonly ask: AskUpstream;
  readonly describeEnd: DescribeEnd;
  readonly send: Send;
}

/** What was asked about, and when: the first of its chain, and the last that was accepted by then. */
interface Asked extends Pick<Ending, "admission" | "upstreamId" | "askedAt" | "isUnproven"> {
  readonly first: string;
  readonly lastAccepted: string | undefined;
}

/**
 * `outdated`: the answer is of a run before a retry, or the relay told the id meanwhile that only a notice had told. So
 * it is asked about again.
 */
type Followed = UpstreamAnswer | "outdated";

export class Errands {
  readonly #env: Env;
  readonly #meter: SendingMeter;
  #large: Promise<unknown> = Promise.resolve();
  readonly #room = new AnswerRoom();

  constructor(env: Env, meter: SendingMeter) {
    this.#env = env;
    this.#meter = meter;
  }

  /** Large answers are read one after the other: the objects of an isolate share its memory. */
  async follow(job: Job): Promise<Followed> {
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

  async #follow(job: Job, turn: () => Promise<void>): Promise<Followed> {
    const asked = this.#askedOf(job);
    if (!asked) return "unknown";
    const { admission, upstreamId, first, isUnproven } = asked;
    const askedAt = this.#meter.clock();
    const lastAccepted = this.#meter.endings.lastAccepted(admission);
    const wasExpired = job.expiresAt <= askedAt;
    let text: Uint8Array | undefined;
    const keep = async (passing: ReadableStream<Uint8Array>) => {
      text = await this.#room.hold(passing, keptBytes);
      return text !== undefined;
    };
    const asking = this.#meter.ask(asked, { turn, keep: isUnproven ? undefined : keep });
    const answer = await asking.catch(() => "unreachable" as const);
    const askedOf = { admission, upstreamId, first, lastAccepted, askedAt, isUnproven };
    const isOutdated = typeof answer === "object" && !(await this.#settleAnswer(answer, askedOf, text));
    const now = this.#meter.clock();
    if (answer === "unknown") this.#meter.openJobs.forget({ admission, upstreamId }, now);
    const goesOn = !isUnproven && typeof answer === "object" && !isFinal(answer.status);
    // By its time and the clock of now, too: the clock may have been set back while the answer was awaited.
    const isExpired = wasExpired && job.expiresAt <= now;
    if (goesOn && (isExpired || ttlEndsAt(job) <= askedAt)) this.#meter.openJobs.outlive(admission, now);
    else if (isExpired && answer === "unreachable") this.#meter.openJobs.assumeUnasked(admission, now);
    else if (isExpired && !isOutdated) this.#meter.openJobs.assume(admission, now);
    return isOutdated ? "outdated" : answer;
  }

  #askedOf(job: Job): AskedJob | undefined {
    const { model, upstreamId, owner, admission } = job;
    const first = new Chain(this.#meter.stores).firstOf(job.admission);
    return upstreamId === null
      ? undefined
      : { model, upstreamId, owner, admission, first, isUnproven: isUnproven(job) };
  }

  /** False where the answer is outdated. Then nothing of it is told or owed. */
  async #settleAnswer(
    answer: Exclude<UpstreamAnswer, string>,
    { first, lastAccepted, ...asked }: Asked,
    text: Uint8Array | undefined,
  ): Promise<boolean> {
    const { status, costMicroUsd, completedAt, body, isTaken } = answer;
    const told = isTaken ? text : body;
    // An id that only a notice named may be another user's job. Its media is not listed, and its result is kept under a
    // name that only a handle with this very id leads to.
    const media = asked.isUnproven ? undefined : answer.media;
    const { endings, clock } = this.#meter;
    // By the rows, and not by the clock, which may have been set meanwhile.
    const isOutdated = () =>
      endings.lastAccepted(asked.admission) !== lastAccepted || (asked.isUnproven && this.#isProven(asked.admission));
    const seenAt = clock();
    const run = endings.runOf({ ...asked, status }, seenAt);
    if (run === undefined || isOutdated()) return false;
    // A list of the owner's jobs names a retry by its own admission, too.
    const own = run === first ? [first] : resultNames([first, asked.admission], run);
    const names = asked.isUnproven ? [provenName(asked)] : own;
    const unkept = told === undefined ? [] : await keepUnder(this.#env.IMAGES, names, { run, body: told });
    const now = clock();
    if (isOutdated()) return false;
    // Or the row of a retry has come or gone that the upstream never accepted.
    if (endings.runOf({ ...asked, status }, now) !== run)
      return this.#settleAnswer(answer, { first, lastAccepted, ...asked }, text);
    const { wantsNotice, admission } = endings.settle(
      { ...asked, status, costMicroUsd, seenAt, completedAt, media },
      now,
    );
    if (told === undefined) return true;
    if (wantsNotice) endings.notify(admission, told, now);
    this.#oweResults(names, unkept, told, now);
    return true;
  }

  /** An answer under an id that was not proven is neither believed nor kept for all who know the job: it is asked for anew. */
  #isProven(admission: string): boolean {
    const job = this.#meter.stores.jobs.find(admission);
    return job !== undefined && !isUnproven(job);
  }

  /**
   * Keeps a debt for each name that KV did not take. For a name that KV took, an older owed result is dropped, so that
   * it cannot overwrite the new one.
   */
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
    const isPaid = await this.#isPaid(debt);
    if (isPaid) stores.transaction(() => stores.debts.payClaimed(debt));
  }

  #isPaid(debt: Debt): Promise<boolean> {
    if (debt.kind === "result") return this.#keepOwed(debt);
    if (debt.kind === "input") return this.#forgetInput(debt);
    return debt.kind === "webhook" ? this.#bringBody(debt) : this.#keepUntold(debt);
  }

  async #forgetInput({ admission }: Debt): Promise<boolean> {
    const { stores } = this.#meter;
    stores.transaction(() => stores.outbox.forgetInput(admission));
    return true;
  }

  /** Its owner has not asked: the answer is kept before the upstream forgets it. A retry has an end of its own. */
  async #keepUntold(debt: Debt): Promise<boolean> {
    const job = this.#meter.stores.jobs.find(debt.admission);
    if (!job || job.successor !== null || this.#isTooLate(debt)) return true;
    const answer = await this.follow(job);
    if (isOver(answer)) return true;
    const { stores, clock } = this.#meter;
    // It goes on: it is asked about as often as any job that does, since its result is kept there for as short a time.
    if (typeof answer === "object") stores.transaction(() => stores.debts.postpone(debt, dueAt(job, clock())));
    return false;
  }

  /** By then nothing of it is kept any more. */
  #isTooLate({ since }: Debt): boolean {
    return this.#meter.clock() >= since + limits.mediaLifetimeMs;
  }

  async #keepOwed(debt: Debt): Promise<boolean> {
    const { admission: name } = debt;
    const body = this.#meter.stores.debts.result(name);
    if (body === undefined || this.#isTooLate(debt)) return true;
    // A retry that was accepted has ended this debt.
    const run = this.#meter.endings.lastWord(admissionIn(name)).newest ?? name;
    return keepResult(this.#env.IMAGES, { name, run, body });
  }

  /**
   * Brings the body of a client's webhook if the request that saw the end did not, or if the end was assumed. If the
   * answer cannot be had any more, the webhook carries the status alone.
   */
  async #bringBody(debt: Debt): Promise<boolean> {
    const { admission } = debt;
    const { stores, endings, describeEnd, clock } = this.#meter;
    const job = stores.jobs.find(admission);
    if (!job) return this.#forgetInput(debt);
    if (job.webhook === null || job.noticed === 1) return true;
    const answer = await this.follow(job);
    const seen = stores.jobs.find(admission);
    if (!seen || seen.noticed === 1) return true;
    // The id may be another user's job: no webhook tells of it.
    if (isUnproven(seen)) return this.#isTooLate(debt) && this.#forgetInput(debt);
    const asked = this.#askedOf(seen);
    const told = typeof answer === "object" ? answer.body : undefined;
    if (asked && seen.status !== null && (isOver(answer) || this.#isTooLate(debt)))
      endings.notify(admission, told ?? describeEnd(asked, seen.status), clock());
    return false;
  }

  async tellNetwork(end: OwedEnd): Promise<void> {
    const told = await this.#meter.network.tell(end).then(
      () => true,
      () => false,
    );
    if (told) this.#meter.stores.transaction(() => this.#meter.stores.networkEnds.remove(end));
  }

  /** Uploads that are over. Without a bucket there is nothing to remove. */
  async removeFiles(keys: string[]): Promise<void> {
    const bucket = (this.#env as Partial<Env>).MEDIA;
    await bucket?.delete(keys.map(uploadFile));
    const { stores, clock } = this.#meter;
    stores.transaction(() => stores.uploads.filesRemoved(keys, clock()));
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
function isOver(answer: Followed): boolean {
  return answer === "unknown" || (typeof answer === "object" && isFinal(answer.status));
}

function configOf(env: Env): Config {
  const reading = readConfig(env);
  if (!reading.ok) throw new Error("misconfigured");
  return reading.config;
}
