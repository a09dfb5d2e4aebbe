// One call of the job interface: what its guards found out, and whom its handler asks.
import type { Context } from "hono";
import { Call, type GatewayEnv } from "../call.ts";
import { type Images, imagesOf } from "../media/images.ts";
import { meterOf } from "../quota/meter-stub.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { UpstreamClient } from "../upstream/upstream-client.ts";
import type { CalledModel } from "./called-model.ts";
import { PayersMeter } from "./payers-meter.ts";

/** The embedded platform and a real service are reached by the same calls. */
export type FindUpstream = (call: Call, payer: string) => Upstream;

export class JobCall extends Call {
  /** The model that is called: there behind `knownModel`. */
  target!: CalledModel;
  readonly images: Images;
  readonly #findUpstream: FindUpstream;
  #upstream: UpstreamClient | undefined;
  #meter: PayersMeter | undefined;
  #idempotencyKey: string | null | undefined;

  constructor(c: Context<GatewayEnv>, findUpstream: FindUpstream) {
    super(c);
    this.images = imagesOf(this.config, this.env);
    this.#findUpstream = findUpstream;
  }

  /** The job that the path names, as its owner calls it; empty where it names none. */
  get handle(): string {
    return this.params["job"] ?? "";
  }

  /** As its caller sent it, well-formed or not; null where there is none. */
  get idempotencyKey(): string | null {
    if (this.#idempotencyKey === undefined) this.#idempotencyKey = this.request.headers.get("Idempotency-Key");
    return this.#idempotencyKey;
  }

  get upstream(): UpstreamClient {
    this.#upstream ??= new UpstreamClient(this.#findUpstream(this, this.principal.payer), this.target.name, (asked) =>
      this.timed("upstream", asked),
    );
    return this.#upstream;
  }

  get meter(): PayersMeter {
    const { payer } = this.principal;
    this.#meter ??= new PayersMeter(
      payer,
      () => meterOf(this.env, payer),
      (work) => this.waitUntil(work),
      (asked) => this.timed("meter", asked),
    );
    return this.#meter;
  }
}

/** What a job's handle is bound to. */
export function jobKey({ principal, target }: JobCall) {
  return { owner: principal.owner, model: target.name };
}

/** Work that goes on when its client has left: what was reserved is bound, settled or freed all the same. */
export function survivesDisconnect<T>(call: JobCall, work: Promise<T>): Promise<T> {
  call.waitUntil(work.catch(() => {}));
  return work;
}

/** Whether others may have asked for the same, and have it from the same job. */
export function mayShare({ target: { model }, config }: JobCall): boolean {
  return model !== undefined && model.output !== "text" && config.imageReuse !== "never";
}
