// The /48 that an anonymous IPv6 address lies in, as the address's meter asks it: it has a meter of its own, under ten
// times the limits, which counts each job of its addresses as a share.
import { answersWithinMs, remote } from "../../wire/remote.ts";
import type { AdmitAnswer, AdmitRequest, Amendment } from "./metering.ts";
import type { OwedEnd } from "./network-ends.ts";
import type { UserMeter } from "./user-meter.ts";

/** Throws where the meter cannot be reached. */
export class Network {
  readonly #namespace: DurableObjectNamespace<UserMeter>;
  readonly #withinMs: number;

  constructor(namespace: DurableObjectNamespace<UserMeter>, withinMs = answersWithinMs.asked) {
    this.#namespace = namespace;
    this.#withinMs = withinMs;
  }

  admit(network: string, request: AdmitRequest): Promise<AdmitAnswer> {
    const { network: _, binds: __, retryOf: ___, ...own } = request;
    const share = { webhook: undefined, idempotency: undefined, token: undefined, hasCeiling: false } as const;
    return this.#meter(network).admit({ ...own, ...share, operation: "network" });
  }

  amend(network: string, admission: string, { terms, reserveMicroUsd, inputBytes, ttlMs }: Amendment) {
    const { network: _, ...own } = terms;
    const share = { terms: { ...own, token: undefined, hasCeiling: false }, reserveMicroUsd, inputBytes, ttlMs };
    return this.#meter(network).amend(admission, share);
  }

  /** Idempotent, and so repeated until it was heard. */
  tell({ network, admission, end }: OwedEnd): Promise<void> {
    const meter = this.#meter(network);
    return end === null ? meter.release(admission) : meter.endShare(admission, end);
  }

  #meter(network: string) {
    return remote<UserMeter>(this.#namespace, network, this.#withinMs);
  }
}
