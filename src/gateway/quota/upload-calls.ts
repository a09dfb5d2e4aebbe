// What the routes of uploads ask of a payer's meter, and what they are told.
import type { AdmitAnswer, Bearer, Terms } from "./metering.ts";
import type { UploadCursor, UploadState } from "./upload-row.ts";

/** No PUT takes longer: who began it gives up before. */
export const longestPutMs = 15 * 60_000;

/** Asked before a URL is given out: the meter answers in one turn. */
export interface UploadRequest extends Terms {
  readonly key: string;
  readonly owner: string;
  readonly bearer: Bearer;
  readonly type: string;
  readonly bytes: number;
  /** Until when a PUT may begin. */
  readonly putUntil: number;
  readonly expiresAt: number;
  /** An address's upload, asked of the meter of its /48. */
  readonly isShare?: boolean;
}

/** A file in its owner's list. */
export interface KeptUpload {
  readonly key: string;
  readonly type: string;
  readonly bytes: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** All of them may be repeated when their answer was lost. */
export interface UploadCalls {
  /** A promise where the meter of the caller's /48 must be asked first. */
  reserveUpload(request: UploadRequest): AdmitAnswer | Promise<AdmitAnswer>;
  /** A PUT begins: what it writes is removed where nothing settles it. */
  beginUpload(key: string): UploadState;
  /** The file is there. Answers `over` if the upload has expired or was deleted meanwhile. */
  keepUpload(key: string): UploadState;
  /** What came was not what was announced: the reservation is free, and the URL is used up. */
  refuseUpload(key: string): void;
  /** False for what is not the owner's. */
  removeUpload(owner: string, key: string): boolean;
  /** Newest first. */
  uploads(owner: string, before: UploadCursor | undefined, count: number): KeptUpload[];
  /** An address's upload in the meter of its network. */
  endUploadShare(key: string, end: UploadState): void;
}
