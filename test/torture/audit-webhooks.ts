// What clients' receivers were told, held against the books.
import type { Job } from "../../src/gateway/quota/job.ts";
import { fateOf } from "./chance.ts";
import type { Told } from "./webhook-receiver.ts";

const leastTries = 3;

/** What was assumed to have timed out may turn out to have completed at a cost that nobody says: that stays assumed. */
export function auditWebhooks(rows: readonly Job[], told: ReadonlyMap<string, Told>): string[] {
  return rows.flatMap(({ admission, status, assumed }) => {
    const said = told.get(admission)?.status;
    return said === undefined || said === status || assumed === 1
      ? []
      : [`webhook ${admission} said ${said}, and the books ${status}`];
  });
}

/** Each that is owed was received once, or tried three times. */
export function auditOwed(rows: readonly Job[], told: ReadonlyMap<string, Told>, seed: number): string[] {
  const owed = rows.filter((row) => isOwed(row, seed));
  const left = owed.filter(({ admission }) => !isPaid(told.get(admission)));
  console.log(`${owed.length - left.length} of ${owed.length} webhooks were received once or tried three times`);
  return left.map((row) => {
    return `${nameOf(row)} was tried ${told.get(row.admission)?.tries ?? 0} times, and never received`;
  });
}

function isPaid(told: Told | undefined): boolean {
  return told !== undefined && (told.isTaken || told.tries >= leastTries);
}

/** What never was a job is nobody's news, and what has the key in it is told to nobody. */
function isOwed({ webhook, boundAt, guessed, endedAt }: Job, seed: number): boolean {
  if (webhook === null || boundAt === null || guessed === 1 || endedAt === null) return false;
  const [, , n] = new URL(webhook).pathname.split("/");
  return !fateOf(seed, Number(n)).leaks;
}

function nameOf({ admission, webhook, status, assumed, operation }: Job): string {
  const { pathname } = new URL(webhook ?? "");
  return `the webhook of ${operation} ${admission} (${status}${assumed ? " assumed" : ""}) to ${pathname}`;
}
