// An upload as a meter keeps it: one row, from its reservation until its file is surely gone.

/** `open`: its URL may be used. `kept`: its file is there. `over`: refused, never used, deleted or expired. */
export type UploadState = "open" | "kept" | "over";

export interface UploadRow {
  readonly key: string;
  readonly owner: string;
  /** A token's that narrows, or the payer's own. */
  readonly account: string;
  /** An anonymous IPv6 caller's /48, whose meter counts the upload as well. */
  readonly network: string | null;
  readonly type: string;
  readonly bytes: number;
  readonly state: UploadState;
  /** The day that its bytes count on: the one that it was reserved on. */
  readonly day: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** A PUT that has begun may write the file until then; 0 where none ever began. */
  readonly busyUntil: number;
  /** When its URL ends, its link ends, or its file is removed: whichever is next. */
  readonly dueAt: number;
}
export interface UploadCursor {
  readonly createdAt: number;
  readonly key: string;
}
