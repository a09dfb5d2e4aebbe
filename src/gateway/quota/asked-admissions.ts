// Admissions that others have a say in: the meter of the caller's network, and the app's budget.
import { type Admissions, lost, needsLease, needsNetwork, type Verdict } from "./admissions.ts";
import type { BudgetSlices } from "./budget-slices.ts";
import type { Endings } from "./endings.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { AdmitAnswer, AdmitRequest, Amendment } from "./metering.ts";
import type { Network } from "./network.ts";
import type { OwedEnd } from "./network-ends.ts";
import type { Released } from "./released.ts";

/** What of a meter takes part in an admission. */
export interface AdmittingMeter {
  readonly stores: MeterStores;
  readonly admissions: Admissions;
  readonly endings: Endings;
  readonly slices: BudgetSlices;
  readonly released: Released;
  readonly network: Network;
  readonly clock: () => number;
  readonly arm: () => void;
}

interface Asking {
  readonly askNetwork: () => Promise<AdmitAnswer>;
  readonly again: () => Verdict;
}

export class AskedAdmissions {
  readonly #meter: AdmittingMeter;

  constructor(meter: AdmittingMeter) {
    this.#meter = meter;
  }

  /** No promise where nobody else is asked. */
  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    const verdict = this.#admit(request, false);
    return typeof verdict === "symbol" ? this.#askAndAdmit(request, verdict) : verdict;
  }

  #admit(request: AdmitRequest, networkAdmitted: boolean): Verdict {
    const { released, endings, admissions } = this.#meter;
    const now = this.#meter.clock();
    if (released.has(request.admission, now)) return lost;
    endings.endOverdue(now);
    return admissions.admit(request, now, networkAdmitted);
  }

  async #askAndAdmit(request: AdmitRequest, first: Verdict): Promise<AdmitAnswer> {
    const { admission, network = "", reserveMicroUsd } = request;
    /** Also where its answer was lost. */
    let mayHoldShare = false;
    const answer = await this.#askAll(first, reserveMicroUsd, {
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
    if (typeof verdict !== "symbol") return verdict;
    const name = stores.jobs.findOpen(admission)?.network ?? "";
    return this.#askAll(verdict, amendment.reserveMicroUsd, {
      askNetwork: () => network.amend(name, admission, amendment),
      again: () => again(true),
    });
  }

  /** Others are admitted meanwhile, so the rules are asked anew after each answer. */
  async #askAll(first: Verdict, neededMicroUsd: number, { askNetwork, again }: Asking): Promise<AdmitAnswer> {
    const { slices, clock, arm } = this.#meter;
    let verdict = first;
    if (verdict === needsNetwork) {
      const answer = await askNetwork().catch(() => networkAway);
      if (!answer.admitted) return answer;
      verdict = again();
    }
    if (verdict === needsLease) {
      verdict = await slices.admit(neededMicroUsd, clock, () => {
        const admitted = again();
        return typeof admitted === "symbol" ? undefined : admitted;
      });
    }
    arm();
    return typeof verdict === "symbol" ? networkAway : verdict;
  }

  /** What it admitted for nothing: a debt until it has heard of it. */
  #releaseShare(end: OwedEnd): void {
    const { stores, clock, arm } = this.#meter;
    stores.transaction(() => {
      stores.touch(clock());
      stores.networkEnds.owe(end, clock());
    });
    arm();
  }
}

const networkAway: AdmitAnswer = {
  admitted: false,
  code: "METER_UNAVAILABLE",
  detail: "The quota of the caller's network cannot be asked.",
  retryAfterSeconds: 1,
};
