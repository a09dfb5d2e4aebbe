// The meter of the /48 that an anonymous IPv6 address lies in, as the address's own meter calls it. It has ten times
// the limits and counts each job of its addresses as a share.
import { answersWithinMs, remote } from "../../durable/remote.ts";
import type { AdmitAnswer, AdmitRequest, Amendment, Metering } from "./metering.ts";
import type { OwedEnd, ShareEnd } from "./network-ends.ts";
import { longestPutMs, type UploadCalls, type UploadRequest } from "./upload-calls.ts";

/** What a meter asks a network's meter. */
export interface NetworkCalls
  extends Rpc.DurableObjectBranded,
    Pick<Metering, "admit" | "amend" | "release">,
    Pick<UploadCalls, "reserveUpload" | "endUploadShare"> {
  /** The job that a share was reserved for goes on. */
  prolongShare(admission: string): void;
  /** A share of the network's is over, as the job was that it was reserved for. */
  endShare(admission: string, end: ShareEnd): void;
}

/** Throws where the meter cannot be reached. */
export class Network {
  readonly #namespace: DurableObjectNamespace<NetworkCalls>;
  readonly #withinMs: number;

  constructor(namespace: DurableObjectNamespace<NetworkCalls>, withinMs = answersWithinMs.asked) {
    this.#namespace = namespace;
    this.#withinMs = withinMs;
  }

  admit(network: string, request: AdmitRequest): Promise<AdmitAnswer> {
    const { network: _, binds: __, retryOf: ___, ...own } = request;
    const share = {
      webhook: undefined,
      webhookInput: undefined,
      idempotency: undefined,
      token: undefined,
      hasCeiling: false,
    } as const;
    return this.#meter(network).admit({ ...own, ...share, operation: "network" });
  }

  amend(network: string, admission: string, { terms, reserveMicroUsd, inputBytes, ttlMs }: Amendment) {
    const { network: _, ...own } = terms;
    const share = { terms: { ...own, token: undefined, hasCeiling: false }, reserveMicroUsd, inputBytes, ttlMs };
    return this.#meter(network).amend(admission, share);
  }

  /** It stays reserved there until its link has ended and no PUT can be under way, unless more is told. */
  reserveUpload(network: string, { network: _, ...own }: UploadRequest): Promise<AdmitAnswer> {
    const lastPutAt = Math.max(own.expiresAt, own.putUntil) + longestPutMs;
    const share = { token: undefined, hasCeiling: false, putUntil: lastPutAt, isShare: true } as const;
    return this.#meter(network).reserveUpload({ ...own, ...share });
  }

  /** Idempotent, and so repeated until it was heard. */
  tell({ network, admission, end }: OwedEnd): Promise<void> {
    const meter = this.#meter(network);
    if (end === null) return meter.release(admission);
    if ("goesOn" in end) return meter.prolongShare(admission);
    return "upload" in end ? meter.endUploadShare(admission, end.upload) : meter.endShare(admission, end);
  }

  #meter(network: string) {
    return remote(this.#namespace, network, this.#withinMs);
  }
}
