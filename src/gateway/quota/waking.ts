// What a meter reads when it wakes: its stored counters, and the rows that they do not include yet. And what it writes
// for that.
import type { AccountJson } from "./account.ts";
import { type AccountSettings, Settings } from "./account-settings.ts";
import { Counters } from "./counters.ts";
import { Debts } from "./debts.ts";
import { Gallery } from "./gallery.ts";
import { Idempotency } from "./idempotency.ts";
import { amountsOf, isShare, type Job, notEnded } from "./job.ts";
import { type EndedCounts, Jobs } from "./jobs.ts";
import { type Lease, Leases } from "./leases.ts";
import type { PlanClaim } from "./metering.ts";
import { NetworkEnds } from "./network-ends.ts";
import { Outbox } from "./outbox.ts";
import { dayOf, minuteMs } from "./periods.ts";
import { Revocations } from "./revocations.ts";
import { SpendByDay } from "./spend.ts";
import { type TableName, Tables } from "./tables.ts";
import { UploadRows } from "./upload-rows.ts";

/** The one row of `state`, in JSON. */
export interface State {
  readonly version: 1;
  /** The admissions up to this one are counted in `payer`. */
  readonly turn: number;
  /** The newest admission there ever was: they sort by time, so that most are known to be new. */
  readonly newest: string;
  /** The last sign of life. */
  readonly activeAt: number;
  /** What the clock said, to the minute, when this was written: it may have run ahead. */
  readonly seenAt?: number;
  /** When the alarm rings, or rang. */
  readonly alarmAt: number | null;
  readonly tables: readonly TableName[];
  readonly payer?: AccountJson;
  readonly ended?: EndedCounts;
  readonly settings?: AccountSettings;
  /** What the payer's last token said, for the operator to see. */
  readonly lastClaim?: PlanClaim;
  readonly leases?: readonly Lease[];
  readonly outboxDueAt?: number | null;
  readonly networkDueAt?: number | null;
  readonly debtsDueAt?: number | null;
  readonly uploadsDueAt?: number | null;
  /** Every row of `ended` is in the sums of `spend`. */
  readonly followsSpend?: boolean;
}

const unborn: State = { version: 1, turn: 0, newest: "", activeAt: 0, alarmAt: null, tables: [] };
/** The two reads of waking. What was never written, or was emptied, has no table. */
function readState(sql: SqlStorage): { state: State; isBorn: boolean } {
  try {
    const row = sql.exec<{ json: string }>("SELECT json FROM state").toArray()[0];
    return { state: row ? JSON.parse(row.json) : unborn, isBorn: true };
  } catch (error) {
    if (!String(error).includes("no such table")) throw error;
    return { state: unborn, isBorn: false };
  }
}

export type Awake = ReturnType<typeof wake>;

export function wake(sql: SqlStorage) {
  const { state, isBorn } = readState(sql);
  const tables = new Tables(sql, isBorn, state.tables);
  const stores = {
    state,
    tables,
    jobs: new Jobs(sql, tables, state.ended),
    counters: new Counters(sql, tables, state.payer),
    settings: new Settings(state.settings),
    leases: new Leases(state.leases),
    outbox: new Outbox(sql, tables, state.outboxDueAt ?? undefined),
    networkEnds: new NetworkEnds(sql, tables, state.networkDueAt ?? undefined),
    debts: new Debts(sql, tables, state.debtsDueAt ?? undefined),
    revocations: new Revocations(sql, tables),
    idempotency: new Idempotency(sql, tables),
    gallery: new Gallery(sql, tables),
    uploads: new UploadRows(sql, tables, state.uploadsDueAt ?? undefined),
    spend: new SpendByDay(sql, tables, state.followsSpend),
  };
  let { turn, newest, activeAt, lastClaim } = state;
  const uncounted: Job[] = [];
  for (const job of [...stores.jobs.open(), ...stores.jobs.unmoved()]) {
    turn = Math.max(turn, job.turn);
    activeAt = Math.max(activeAt, job.admittedAt);
    if (job.admission > newest) newest = job.admission;
    if (job.turn > state.turn) uncounted.push(job);
    else if (job.endedAt === null) stores.counters.countPlace(job, 1);
    else replaceOpenByEnd(job, stores);
  }
  for (const job of uncounted.sort((one, other) => one.turn - other.turn)) {
    stores.counters.admit(job);
    lastClaim = claimOf(job);
    if (isOwedToBudget(job)) stores.leases.scheduleReport(dayOf(job.admittedAt), job.admittedAt);
  }
  const seenAt = Math.max(activeAt, state.seenAt ?? 0);
  return { ...stores, lastClaim, turn, newest, activeAt, seenAt, countedTurn: state.turn, json: "" };
}

/** The state counts the job as it was before it ended. */
function replaceOpenByEnd(
  job: Job,
  { counters, leases }: { readonly counters: Counters; readonly leases: Leases },
): void {
  const open: Job = { ...job, ...notEnded };
  counters.countPlace(open, 1);
  counters.count(open, -1);
  counters.count(job, 1);
  const isOwed = isOwedToBudget(open) || isOwedToBudget(job);
  if (isOwed) leases.scheduleReport(dayOf(job.admittedAt), job.endedAt ?? job.admittedAt);
}

/** A share of a network's is another meter's job, which reports it. */
export function isOwedToBudget(job: Job): boolean {
  const { known, assumed, reserved } = amountsOf(job);
  return !isShare(job) && known + assumed + reserved > 0;
}

export function claimOf({ plan, planFrom }: Job): PlanClaim {
  return { plan, planFrom };
}

/** What is read when the object wakes again. */
export function stateOf(open: Awake, alarmAt: number | null, now: number): State {
  const { turn, newest, activeAt, lastClaim } = open;
  return {
    version: 1,
    turn,
    newest,
    activeAt,
    seenAt: now - (now % minuteMs),
    alarmAt,
    payer: open.counters.payer.json(now),
    ended: open.jobs.endedCounts,
    settings: open.settings.current,
    ...(lastClaim && { lastClaim }),
    leases: open.leases.json,
    outboxDueAt: open.outbox.nextDue() ?? null,
    networkDueAt: open.networkEnds.nextDue() ?? null,
    debtsDueAt: open.debts.nextDue() ?? null,
    uploadsDueAt: open.uploads.nextDue() ?? null,
    tables: open.tables.made,
    ...(open.spend.isFollowed && { followsSpend: true }),
  };
}
