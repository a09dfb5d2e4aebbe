// One request for the gateway's guards and handlers.
import { type CallEnv, HttpCall } from "../http/call.ts";
import type { Principal } from "./identity/principal.ts";
import type { ControlView } from "./operator-settings/control-view.ts";

export class Call extends HttpCall {
  /** Who calls, and the operator's settings: there behind `authenticate`. */
  principal!: Principal;
  control!: ControlView;
}

export type GatewayEnv = CallEnv<Call>;
