// What clients' receivers were told, held against the books.
import type { Job } from "../../src/gateway/quota/job.ts";
import { fateOf } from "./chance.ts";
import type { Told } from "./webhook-receiver.ts";

/** Of receivers that take what they are told. */
export interface Delivery {
  readonly owed: number;
  readonly came: number;
}

/** What was assumed to have timed out may turn out to have completed at a cost that nobody says: that stays assumed. */
export function auditWebhooks(rows: readonly Job[], told: ReadonlyMap<string, Told>): string[] {
  return rows.flatMap(({ admission, status, assumed }) => {
    const said = told.get(admission)?.status;
    return said === undefined || said === status || assumed === 1
      ? []
      : [`webhook ${admission} said ${said}, and the books ${status}`];
  });
}

/** A process that dies may take with it what it was about to owe; and what nobody knew the end of is owed to nobody. */
export function deliveryOf(rows: readonly Job[], told: ReadonlyMap<string, Told>, seed: number): Delivery {
  const owed = rows.filter(({ webhook, assumed }) => {
    const [, mood, n] = new URL(webhook ?? "http://none/none/0").pathname.split("/");
    return mood === "takes" && assumed === 0 && !fateOf(seed, Number(n)).leaks;
  });
  return { owed: owed.length, came: owed.filter(({ admission }) => told.has(admission)).length };
}
