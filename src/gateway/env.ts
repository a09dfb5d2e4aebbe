// What the gateway's handlers find in their context beside the door's: who calls, and the operator's settings.
import type { Context } from "hono";
import type { AppEnv } from "../wire/exchange.ts";
import type { ControlView } from "./control/control-view.ts";
import type { Principal } from "./identity/principal.ts";

export interface GatewayEnv {
  Bindings: AppEnv["Bindings"];
  /** `principal` and `control` are there behind `authenticate`. */
  Variables: AppEnv["Variables"] & { principal: Principal; control: ControlView };
}

export type GatewayContext = Context<GatewayEnv>;
