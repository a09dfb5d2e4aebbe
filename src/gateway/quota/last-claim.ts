// What a payer's last token said of its plan, kept for the operator to see.
import type { PlanClaim } from "./metering.ts";

export class LastClaim {
  readonly #sql: SqlStorage;
  #last: PlanClaim | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    const query = "SELECT plan, planFrom FROM last_claim";
    this.#last = sql.exec<{ plan: string; planFrom: PlanClaim["planFrom"] }>(query).toArray()[0];
  }

  get last(): PlanClaim | undefined {
    return this.#last;
  }

  /** Most payers' tokens all say the same: it is written once. */
  note({ plan, planFrom }: PlanClaim): void {
    if (this.#last?.plan === plan && this.#last.planFrom === planFrom) return;
    this.#sql.exec("INSERT OR REPLACE INTO last_claim (id, plan, planFrom) VALUES (1, ?, ?)", plan, planFrom);
    this.#last = { plan, planFrom };
  }
}
