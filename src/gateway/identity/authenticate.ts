// The guards: who calls is known behind `authenticate`, and is the operator behind `operatorOnly`.
import type { MiddlewareHandler } from "hono";
import { readKey, sameKey } from "../../wire/keys.ts";
import type { ControlView } from "../control/control-view.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { identityOf } from "./identity.ts";
import type { Principal } from "./principal.ts";
import { revoked, unauthorized } from "./refused-token.ts";

export type ReadControl = (c: GatewayContext) => ControlView | Promise<ControlView>;

export interface Caller {
  readonly principal: Principal;
  readonly control: ControlView;
}
/** Throws the Problem that the caller is answered with. */
export type IdentifyCaller = (c: GatewayContext) => Promise<Caller>;

export function callerIdentifier(readControl: ReadControl): IdentifyCaller {
  return async (c) => {
    const key = readKey(c.req.raw.headers);
    if (key === undefined) throw unauthorized("A token is needed: Authorization: Bearer <token>.");
    const identity = identityOf(c.get("config"));
    const now = c.get("exchange").startedAt;
    const principal = identity.recall(key, now) ?? (await identity.identify(key, now));
    const control = await readControl(c);
    if (control.isRevoked(principal)) throw revoked();
    return { principal, control };
  };
}

export function authenticator(identifyCaller: IdentifyCaller): MiddlewareHandler<GatewayEnv> {
  return async (c, next) => {
    const { principal, control } = await identifyCaller(c);
    c.set("principal", principal);
    c.set("control", control);
    c.get("exchange").owner = principal.ownerHash;
    await next();
  };
}

export const operatorOnly: MiddlewareHandler<GatewayEnv> = async (c, next) => {
  const key = readKey(c.req.raw.headers);
  if (!key || !(await sameKey(key, c.get("config").adminToken))) throw unauthorized("The operator's key is needed.");
  c.get("exchange").owner = "operator";
  await next();
};
