// How a payer's meter takes uploads: reserved when a URL is given out, settled when its file is there, freed when it ends.
import { OneByOne } from "../../isolate/one-by-one.ts";
import { payersAccount } from "./account.ts";
import { type Admissions, lost, needsNetwork, refuse } from "./admissions.ts";
import { neededOf } from "./decide.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { AdmitAnswer } from "./metering.ts";
import type { Network } from "./network.ts";
import { networkAway } from "./network-away.ts";
import { dayOf } from "./periods.ts";
import { rateLimitFields } from "./rate-limit-fields.ts";
import type { Released } from "./released.ts";
import { type KeptUpload, longestPutMs, type UploadRequest } from "./upload-calls.ts";
import type { UploadCursor, UploadRow, UploadState } from "./upload-row.ts";

/** Announced, and not sent yet: no plan limits how many, and each is a row. All addresses of a network may have ten times as many. */
const mostOpen = { payer: 1000, network: 10_000 };

/** What of a meter takes part. */
export interface UploadingMeter {
  readonly stores: MeterStores;
  readonly admissions: Admissions;
  readonly network: Network;
  readonly released: Released;
  readonly clock: () => number;
}

export class UploadAdmissions {
  readonly #meter: UploadingMeter;
  /** As for jobs. */
  readonly #ofNetwork = new OneByOne();

  constructor(meter: UploadingMeter) {
    this.#meter = meter;
  }

  /** No promise where nobody else is asked. */
  reserve(request: UploadRequest): AdmitAnswer | Promise<AdmitAnswer> {
    const verdict = this.#reserve(request, false);
    return verdict === needsNetwork ? this.#ofNetwork.run(() => this.#reserveInTurn(request)) : verdict;
  }

  async #reserveInTurn(request: UploadRequest): Promise<AdmitAnswer> {
    const verdict = this.#reserve(request, false);
    return verdict === needsNetwork ? this.#askAndReserve(request) : verdict;
  }

  async #askAndReserve(request: UploadRequest): Promise<AdmitAnswer> {
    const { key, network = "" } = request;
    const { stores, clock } = this.#meter;
    const share = await this.#meter.network.reserveUpload(network, request).catch(() => undefined);
    // Others are admitted meanwhile, so the rules are asked anew.
    const answer = share?.admitted ? this.#reserve(request, true) : (share ?? networkAway);
    if (answer === needsNetwork) throw new Error("its network was asked");
    if (!answer.admitted && share?.admitted !== false) {
      stores.transaction(() => this.#owe({ key, network, state: "open" }, clock()));
    }
    return answer;
  }

  #reserve(request: UploadRequest, networkAdmitted: boolean): AdmitAnswer | typeof needsNetwork {
    requireSize(request.bytes);
    const { stores, admissions, clock } = this.#meter;
    const { owner, bearer, network, key, bytes } = request;
    const now = clock();
    this.endOverdue();
    if (this.#meter.released.has(key, now)) return lost;
    if (stores.revocations.covers(owner, bearer)) return revoked;
    const usages = admissions.uploadUsages(request, now);
    if (stores.uploads.find(key)) return { admitted: true, quota: rateLimitFields(usages, now) };
    const asked = { reserveMicroUsd: 0, bytes };
    const refusal = refuse(usages, asked, now);
    if (refusal) return refusal;
    const most = request.isShare ? mostOpen.network : mostOpen.payer;
    if (stores.uploads.hasOpen(most)) return tooManyOpen(most, stores.uploads.nextDue(), now);
    if (network !== undefined && !networkAdmitted) return needsNetwork;
    stores.transaction(() => {
      stores.touch(now);
      stores.uploads.add(rowOf(request, now));
    });
    return { admitted: true, quota: rateLimitFields(usages, now, (usage) => neededOf(usage, asked)) };
  }

  begin(key: string): UploadState {
    this.endOverdue();
    const { stores, clock } = this.#meter;
    const row = stores.uploads.find(key);
    if (row?.state !== "open") return row?.state ?? "over";
    const now = clock();
    const isRevoked = stores.revocations.covers(row.owner, { issuedAt: row.createdAt, tokenId: undefined });
    stores.transaction(() => {
      stores.touch(now);
      if (isRevoked) this.#end(row, now);
      else stores.uploads.occupy(row, now + longestPutMs);
    });
    return isRevoked ? "over" : "open";
  }

  keep(key: string): UploadState {
    this.endOverdue();
    const { stores, clock } = this.#meter;
    const row = stores.uploads.find(key);
    if (row?.state !== "open") return row?.state ?? "over";
    stores.transaction(() => {
      stores.uploads.keep(row);
      if (row.network !== null) this.#tell(row.key, row.network, "kept", clock());
    });
    return "kept";
  }

  /** Of one that is kept already nothing is refused any more. */
  refuse(key: string): void {
    const { stores, clock } = this.#meter;
    const row = stores.uploads.find(key);
    if (row?.state === "open") stores.transaction(() => this.#end(row, clock()));
  }

  remove(owner: string, key: string): boolean {
    this.endOverdue();
    const { stores, clock } = this.#meter;
    const row = stores.uploads.find(key);
    if (row?.owner !== owner) return false;
    if (row.state !== "over") stores.transaction(() => this.#end(row, clock()));
    return true;
  }

  list(owner: string, before: UploadCursor | undefined, count: number): KeptUpload[] {
    const { stores, clock } = this.#meter;
    const rows = stores.uploads.page(owner, before, count, clock());
    return rows.map(({ key, type, bytes, createdAt, expiresAt }) => ({ key, type, bytes, createdAt, expiresAt }));
  }

  /** An address's upload as its network counts it: reserved until its link ends, unless more is told. */
  endShare(key: string, end: UploadState): void {
    const { stores, clock } = this.#meter;
    const row = stores.uploads.find(key);
    if (!row) this.#meter.released.add(key, clock());
    if (!row || row.state === "over") return;
    stores.transaction(() => {
      if (end !== "open" && row.state === "open") stores.uploads.keep(row);
      if (end !== "kept") stores.uploads.end({ ...row, state: end === "open" ? row.state : "kept" }, clock());
    });
  }

  endOverdue(): void {
    const { stores, clock } = this.#meter;
    const now = clock();
    if ((stores.uploads.nextDue() ?? Number.POSITIVE_INFINITY) > now) return;
    stores.transaction(() => {
      for (const row of stores.uploads.endOverdue(now)) this.#owe(row, now);
    });
  }

  #end(row: UploadRow, now: number): void {
    this.#meter.stores.uploads.end(row, now);
    this.#owe(row, now);
  }

  /** Its network hears that it is over, and whether its bytes were uploaded. */
  #owe({ key, network, state }: Pick<UploadRow, "key" | "network" | "state">, now: number): void {
    if (network !== null) this.#tell(key, network, state === "open" ? "open" : "over", now);
  }

  #tell(key: string, network: string, upload: UploadState, now: number): void {
    this.#meter.stores.networkEnds.add({ admission: key, network, end: { upload } }, now);
  }
}

function rowOf(request: UploadRequest, now: number): Parameters<MeterStores["uploads"]["add"]>[0] {
  const { key, owner, token, network = null, type, bytes, putUntil, expiresAt } = request;
  const account = token?.id ?? payersAccount;
  return { key, owner, account, network, type, bytes, day: dayOf(now), createdAt: now, expiresAt, dueAt: putUntil };
}

/** Whatever computed it, nothing else may reach the counters. */
function requireSize(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes <= 0) throw new RangeError(`${bytes} is no size`);
}

/** One of them ends when it is sent, or when its time is over. */
function tooManyOpen(most: number, nextDue = 0, now: number): AdmitAnswer {
  const detail = `More than ${most} uploads were announced and not sent.`;
  const retryAfterSeconds = Math.max(1, Math.ceil((nextDue - now) / 1000));
  return { admitted: false, code: "RATE_LIMITED", detail, retryAfterSeconds };
}

const revoked: AdmitAnswer = { admitted: false, code: "TOKEN_REVOKED", detail: "The token was revoked." };
