// What an admission costs at a payer's meter that has seen many.
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { rules } from "../gateway/stage.ts";
import { type Growth, type GrowthEffort, type Holder, measureBySize, withHolders } from "./by-size.ts";
import { model, Payer, user } from "./payer.ts";

export function measureAdmits(upstream: WorkerdProcess, effort: GrowthEffort): Promise<Growth> {
  return withHolders(
    effort.sizes,
    (size) => Admitting.start(upstream, size),
    (holders) =>
      measureBySize(
        { what: "an admission", beside: "jobs of the payer" },
        holders,
        effort,
        (holder, calls) => holder.admit(calls),
        (holder) => holder.takeBack(),
      ),
  );
}

const kind = "image";
const request: Omit<AdmitRequest, "admission"> = {
  owner: `user:${user}`,
  model,
  kind,
  operation: "run",
  plan: "bench",
  planFrom: "token",
  plans: plansText({ bench: rules }),
  token: undefined,
  bearer: { issuedAt: Date.now(), tokenId: undefined },
  hasCeiling: false,
  inputBytes: 100,
  hasNotice: true,
  reserveMicroUsd: 20_000,
  ttlMs: 86_400_000,
  retentionMs: 1_800_000,
  webhook: undefined,
  idempotency: undefined,
};

/** The meter alone: no relay around it in which a growing cost would be lost. */
class Admitting implements Holder {
  readonly size: number;
  readonly #payer: Payer;
  #admissions: string[] = [];

  private constructor(size: number, payer: Payer) {
    this.size = size;
    this.#payer = payer;
  }

  static async start(upstream: WorkerdProcess, size: number): Promise<Admitting> {
    const { payer } = await Payer.withPast(upstream, size);
    return new Admitting(size, payer);
  }

  get server() {
    return this.#payer.server;
  }

  async admit(count: number): Promise<void> {
    this.#admissions = Array.from({ length: count }, () => newAdmission(Date.now()));
    await this.#tell("admit", { payer: request.owner, request, admissions: this.#admissions });
  }

  /** So that the past stays as long as it is. */
  async takeBack(): Promise<void> {
    await this.#tell("release", { payer: request.owner, admissions: this.#admissions });
  }

  async #tell(act: string, what: object): Promise<void> {
    await this.#payer.ask(`/bench/${act}`, { method: "POST", body: JSON.stringify(what) });
  }
}
