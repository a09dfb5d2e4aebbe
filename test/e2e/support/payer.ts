// One of the app's users against a real process: submits, reads what the meter shows of it, and how the operator sees it.
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import type { Server } from "../../support/serve.ts";
import { testSettings } from "../../support/settings.ts";
import { exchange } from "./exchange.ts";

export interface Order {
  readonly model: string;
  readonly operation: "run" | "runsync";
  readonly input: Readonly<Record<string, unknown>>;
  readonly ttlMs?: number;
  readonly key?: string;
}
/** What came of an order; where the process died meanwhile nobody knows. */
export type Outcome =
  | { readonly kind: "accepted"; readonly id: string }
  | { readonly kind: "refused"; readonly code: string }
  | { readonly kind: "cut" };

/** A job as the payer's books have it. */
export interface Booked {
  readonly model: string;
  /** Null where the upstream's id is not known, or only by a notice. */
  readonly id: string | null;
  readonly isOpen: boolean;
  readonly status: string;
  readonly reservedMicroUsd: number;
  readonly costMicroUsd: number;
}
export interface Books {
  readonly jobs: readonly Booked[];
  readonly limits: readonly { readonly unit: Rule["unit"]; readonly used: number; readonly reserved: number }[];
  readonly spent: { readonly microUsd: number; readonly assumedMicroUsd: number; readonly reservedMicroUsd: number };
}

interface Usage {
  readonly limits: readonly { unit: Rule["unit"]; used: number; reserved: number }[];
  readonly jobs: readonly { model: string; status: string; reservedUsd: number; costUsd: number | null }[];
}
interface Spent {
  readonly spent: { usd: number; assumedUsd: number; reservedUsd: number };
}

const microUsd = (usd: number) => Math.round(usd * 1e6);

export class Payer {
  readonly #server: Server;
  readonly #user: string;
  readonly #token: string;

  private constructor(server: Server, user: string, token: string) {
    this.#server = server;
    this.#user = user;
    this.#token = token;
  }

  /** The token claims no limits of its own: the operator sets the rules, or the token narrows by them. */
  static async mint(server: Server, user: string, rules: readonly Rule[], by: "operator" | "token"): Promise<Payer> {
    const asked = { user, plan: "unlimited", ...(by === "token" && { rules }) };
    const minted = await exchange<{ token: string }>(server, "POST", "/tokens", testSettings.APP_SECRET, asked);
    const payer = new Payer(server, user, minted.token);
    if (by === "operator") await payer.#asOperator("PATCH", { rules });
    return payer;
  }

  async submit({ model, operation, input, ttlMs, key }: Order): Promise<Outcome> {
    const body = JSON.stringify({ input, ...(ttlMs !== undefined && { policy: { ttl: ttlMs } }) });
    const headers = { Authorization: `Bearer ${this.#token}`, ...(key !== undefined && { "Idempotency-Key": key }) };
    try {
      const response = await fetch(`${this.#server.url}/v2/${model}/${operation}`, { method: "POST", headers, body });
      const { id, code } = (await response.json()) as { id: string; code: string };
      return response.status === 200 ? { kind: "accepted", id } : { kind: "refused", code };
    } catch {
      return { kind: "cut" };
    }
  }

  async status(model: string, id: string): Promise<string> {
    const path = `/v2/${model}/status/${id}`;
    return (await exchange<{ status: string }>(this.#server, "GET", path, this.#token)).status;
  }

  /** The two listings are of one order; whoever reads while jobs end may have to read again. */
  async books(models: readonly string[]): Promise<Books> {
    const [usage, { spent }, ...listed] = await Promise.all([
      exchange<Usage>(this.#server, "GET", "/usage", this.#token),
      this.#asOperator<Spent>("GET"),
      ...models.map((model) => this.#ids(model)),
    ]);
    const jobs = models.flatMap((model, index) => {
      const ids = listed[index] ?? [];
      const shown = usage.jobs.filter((job) => job.model === model);
      if (shown.length !== ids.length) throw new Error(`${shown.length} jobs and ${ids.length} requests of ${model}`);
      return shown.map((job, nth) => booked(job, ids[nth] ?? null));
    });
    const limits = usage.limits.map(({ unit, used, reserved }) => ({
      unit,
      used: unit === "usd" ? microUsd(used) : used,
      reserved: unit === "usd" ? microUsd(reserved) : reserved,
    }));
    const { usd, assumedUsd, reservedUsd } = spent;
    const totals = { microUsd: microUsd(usd), assumedMicroUsd: microUsd(assumedUsd) };
    return { jobs, limits, spent: { ...totals, reservedMicroUsd: microUsd(reservedUsd) } };
  }

  async #ids(model: string): Promise<(string | null)[]> {
    const path = `/v2/${model}/requests?limit=100`;
    const page = await exchange<{ requests: { id: string }[] }>(this.#server, "GET", path, this.#token);
    // Of a job without an upstream id that is proven the list has the admission, which is no handle.
    return page.requests.map(({ id }) => (id.includes(".") ? id : null));
  }

  #asOperator<T>(method: string, body?: unknown): Promise<T> {
    return exchange<T>(this.#server, method, `/admin/users/${this.#user}`, testSettings.ADMIN_TOKEN, body);
  }
}

function booked({ model, status, reservedUsd, costUsd }: Usage["jobs"][number], id: string | null): Booked {
  const reservedMicroUsd = microUsd(reservedUsd);
  return { model, id, isOpen: costUsd === null, status, reservedMicroUsd, costMicroUsd: microUsd(costUsd ?? 0) };
}
