// Admissions for which another object must be asked: the meter of the caller's /48, or the app's budget (BUDGET).
import { OneByOne } from "../../isolate/one-by-one.ts";
import { type Admissions, lost, needsLease, needsNetwork, type Verdict } from "./admissions.ts";
import type { BudgetSlices } from "./budget-slices.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { AdmitAnswer, AdmitRequest, Amendment } from "./metering.ts";
import type { Network } from "./network.ts";
import { networkAway } from "./network-away.ts";
import type { OwedEnd } from "./network-ends.ts";
import type { OpenJobs } from "./open-jobs.ts";
import { dayOf } from "./periods.ts";
import type { Released } from "./released.ts";

/** What of a meter takes part in an admission. */
export interface AdmittingMeter {
  readonly stores: MeterStores;
  readonly admissions: Admissions;
  readonly openJobs: OpenJobs;
  readonly slices: BudgetSlices;
  readonly released: Released;
  readonly network: Network;
  readonly clock: () => number;
  readonly arm: () => void;
}

interface Asking {
  readonly day: () => number;
  /** All that the payer's own rules admit of what waits for the budget. */
  readonly mostMicroUsd: () => number;
  readonly askNetwork: () => Promise<AdmitAnswer>;
  readonly again: () => Verdict;
}

export class AskedAdmissions {
  readonly #meter: AdmittingMeter;
  /** The network is asked for one job at a time: so it is asked for no more than the address's own rules admit. */
  readonly #ofNetwork = new OneByOne();

  constructor(meter: AdmittingMeter) {
    this.#meter = meter;
  }

  /** No promise where nobody else is asked. */
  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    const verdict = this.#admit(request, false);
    if (verdict === needsLease) return this.#askAndAdmit(request, verdict);
    return verdict === needsNetwork ? this.#ofNetwork.run(() => this.#admitInTurn(request)) : verdict;
  }

  async #admitInTurn(request: AdmitRequest): Promise<AdmitAnswer> {
    const verdict = this.#admit(request, false);
    return typeof verdict === "symbol" ? this.#askAndAdmit(request, verdict) : verdict;
  }

  #admit(request: AdmitRequest, networkAdmitted: boolean): Verdict {
    const { released, openJobs, admissions } = this.#meter;
    const now = this.#meter.clock();
    if (released.has(request.admission, now)) return lost;
    openJobs.endOverdue(now);
    return admissions.admit(request, now, networkAdmitted);
  }

  async #askAndAdmit(request: AdmitRequest, first: Verdict): Promise<AdmitAnswer> {
    const { admission, network = "", reserveMicroUsd } = request;
    /** Also where its answer was lost. */
    let mayHoldShare = false;
    const answer = await this.#askAll(first, reserveMicroUsd, {
      day: () => dayOf(this.#meter.clock()),
      mostMicroUsd: () => reserveMicroUsd * this.#meter.admissions.timesAdmitted(request, this.#meter.clock()),
      askNetwork: async () => {
        mayHoldShare = true;
        const share = await this.#meter.network.admit(network, request);
        mayHoldShare = share.admitted;
        return share;
      },
      again: () => this.#admit(request, true),
    });
    if (mayHoldShare && !answer.admitted) this.#releaseShare({ admission, network, end: null });
    return answer;
  }

  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer> {
    const { admissions, stores, network, clock } = this.#meter;
    const again = (networkAdmitted: boolean) => admissions.amend(admission, amendment, clock(), networkAdmitted);
    const verdict = again(false);
    const job = stores.jobs.findOpen(admission);
    if (typeof verdict !== "symbol") return verdict;
    if (!job) return lost;
    /** Its money counts on the day that it was admitted on. */
    const day = dayOf(job.admittedAt);
    const addedMicroUsd = Math.max(0, amendment.reserveMicroUsd - job.reserved);
    return this.#askAll(verdict, addedMicroUsd, {
      day: () => day,
      mostMicroUsd: () => addedMicroUsd,
      askNetwork: () => network.amend(job.network ?? "", admission, amendment),
      again: () => again(true),
    });
  }

  /** Others are admitted meanwhile, so the rules are asked anew after each answer. */
  async #askAll(
    first: Verdict,
    neededMicroUsd: number,
    { askNetwork, again, ...asking }: Asking,
  ): Promise<AdmitAnswer> {
    const { slices, clock, arm } = this.#meter;
    let verdict = first;
    if (verdict === needsNetwork) {
      const answer = await askNetwork().catch(() => networkAway);
      if (!answer.admitted) return answer;
      verdict = again();
    }
    if (verdict === needsLease) {
      const admitted = () => {
        const answer = again();
        return typeof answer === "symbol" ? undefined : answer;
      };
      verdict = await slices.admit({ ...asking, needed: neededMicroUsd, clock, again: admitted });
    }
    arm();
    return typeof verdict === "symbol" ? networkAway : verdict;
  }

  /** The network's meter admitted a share that is not needed: an end that it must be told of until it has heard it. */
  #releaseShare(end: OwedEnd): void {
    const { stores, clock, arm } = this.#meter;
    stores.transaction(() => {
      stores.touch(clock());
      stores.networkEnds.add(end, clock());
    });
    arm();
  }
}
