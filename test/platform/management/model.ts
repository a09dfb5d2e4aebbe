// What the accounts ought to hold and owe, by plain rules and a clock: the model that stands beside the objects.
import type { AccountName } from "./management-client.ts";

export const gpus = {
  "NVIDIA L4": { pod: 430_000, worker: 684_000 },
  "NVIDIA A40": { pod: 400_000, worker: 1_224_000 },
} as const;
export type Gpu = keyof typeof gpus;

interface PodModel {
  status: "RUNNING" | "EXITED";
  locked: boolean;
  readonly gpu: Gpu;
  readonly template?: string | undefined;
  readonly volume?: string | undefined;
  readonly auth?: string | undefined;
}
interface EndpointModel {
  readonly template: string;
  readonly volume?: string | undefined;
  gpu: Gpu;
}
interface Books {
  readonly auths: Set<string>;
  readonly templates: Map<
    string,
    { public: boolean; readonly serverless: boolean; readonly auth?: string | undefined }
  >;
  readonly volumes: Map<string, { size: number }>;
  readonly pods: Map<string, PodModel>;
  readonly endpoints: Map<string, EndpointModel>;
}
type Kind = "pods" | "endpoints" | "networkvolumes";

const hourMs = 3_600_000;
const emptyBooks = (): Books => ({
  auths: new Set(),
  templates: new Map(),
  volumes: new Map(),
  pods: new Map(),
  endpoints: new Map(),
});

export class Model {
  readonly books: Record<AccountName, Books> = { north: emptyBooks(), south: emptyBooks() };
  /** Milliseconds by account and kind, then by what makes a price and the hour. */
  readonly #ran = new Map<string, Map<string, { ms: number; microUsdPerHour: number }>>();

  /** Time passes: whatever runs, runs on. */
  advance(from: number, to: number): void {
    for (const as of ["north", "south"] as const) {
      for (const [id, { status, gpu }] of this.books[as].pods) {
        if (status === "RUNNING") this.ran(as, "pods", id, gpus[gpu].pod, from, to);
      }
      for (const [id, { size }] of this.books[as].volumes) this.ran(as, "networkvolumes", id, size * 100, from, to);
    }
  }

  ran(as: AccountName, kind: Kind, what: string, microUsdPerHour: number, from: number, to: number): void {
    const meters = this.#ran.get(`${as} ${kind}`) ?? new Map<string, { ms: number; microUsdPerHour: number }>();
    this.#ran.set(`${as} ${kind}`, meters);
    for (let at = from; at < to; ) {
      const hour = Math.floor(at / hourMs);
      const end = Math.min(to, (hour + 1) * hourMs);
      const key = `${what} ${microUsdPerHour} ${hour}`;
      meters.set(key, { ms: (meters.get(key)?.ms ?? 0) + end - at, microUsdPerHour });
      at = end;
    }
  }

  /** Each hour of each meter rounded down. */
  owed(as: AccountName, kind: Kind): { microUsd: number; ms: number } {
    const sum = { microUsd: 0, ms: 0 };
    for (const { ms, microUsdPerHour } of this.#ran.get(`${as} ${kind}`)?.values() ?? []) {
      sum.microUsd += Math.floor((ms * microUsdPerHour) / hourMs);
      sum.ms += ms;
    }
    return sum;
  }

  mayUse(as: AccountName, template: string): boolean {
    const own = this.books[as].templates.has(template);
    return own || Object.values(this.books).some(({ templates }) => templates.get(template)?.public === true);
  }

  fits(template: string, serverless: boolean): boolean {
    return Object.values(this.books).some(({ templates }) => templates.get(template)?.serverless === serverless);
  }

  isUsed(as: AccountName, template: string): boolean {
    const { pods, endpoints } = this.books[as];
    return [...pods.values(), ...endpoints.values()].some((user) => user.template === template);
  }

  isAttached(as: AccountName, volume: string): boolean {
    const { pods, endpoints } = this.books[as];
    return [...pods.values(), ...endpoints.values()].some((user) => user.volume === volume);
  }

  isNamed(as: AccountName, auth: string): boolean {
    const { pods, templates } = this.books[as];
    return [...pods.values(), ...templates.values()].some((user) => user.auth === auth);
  }
}
