// One call of the job interface, as its handlers have it: plain values, none of the framework's.
import type { Config } from "../../config.ts";
import type { Exchange } from "../../wire/exchange.ts";
import type { ControlView } from "../control/control-view.ts";
import type { Principal } from "../identity/principal.ts";
import type { Images } from "../images/images.ts";
import type { Upstream } from "../upstream.ts";
import type { PayersMeter } from "./payers-meter.ts";
import type { Target } from "./target.ts";

export interface JobCall {
  readonly request: Request;
  readonly path: string;
  /** The job that the path names, as its owner calls it; empty where it names none. */
  readonly handle: string;
  readonly exchange: Exchange;
  readonly config: Config;
  readonly control: ControlView;
  readonly principal: Principal;
  readonly target: Target;
  readonly upstream: Upstream;
  readonly meter: PayersMeter;
  readonly images: Images;
  readonly env: Pick<Env, "IMAGES" | "USER_METER">;
  /** Work that goes on beside the answer, and after it. */
  waitUntil(work: Promise<unknown>): void;
}

/** What a job's handle is bound to. */
export function jobKey({ principal, target }: JobCall) {
  return { owner: principal.owner, model: target.name };
}

/** Work that goes on when its client has left: what was reserved is bound, settled or freed all the same. */
export function outlive<T>(call: JobCall, work: Promise<T>): Promise<T> {
  call.waitUntil(work.catch(() => {}));
  return work;
}
