// The guards: who calls is known behind `authenticate`, and is the operator behind `operatorOnly`.
import { readKey, sameKey } from "../../wire/keys.ts";
import type { Guard } from "../behind.ts";
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
/** Throws the Problem that the caller is answered with. No promise for whom the isolate remembers. */
export type IdentifyCaller = (c: GatewayContext) => Caller | Promise<Caller>;

export function callerIdentifier(readControl: ReadControl): IdentifyCaller {
  const unlessRevoked = (principal: Principal, control: ControlView): Caller => {
    if (control.isRevoked(principal)) throw revoked();
    return { principal, control };
  };
  const identify = async (c: GatewayContext, key: string, now: number): Promise<Caller> => {
    const principal = await identityOf(c.get("config")).identify(key, now);
    return unlessRevoked(principal, await readControl(c));
  };
  return (c) => {
    const key = readKey(c.req.raw.headers);
    if (key === undefined) throw unauthorized("A token is needed: Authorization: Bearer <token>.");
    const now = c.get("exchange").startedAt;
    const known = identityOf(c.get("config")).recall(key, now);
    if (!known) return identify(c, key, now);
    const control = readControl(c);
    return control instanceof Promise
      ? control.then((read) => unlessRevoked(known, read))
      : unlessRevoked(known, control);
  };
}

export function authenticator(identifyCaller: IdentifyCaller): Guard<GatewayEnv> {
  return (c) => {
    const caller = identifyCaller(c);
    return caller instanceof Promise ? caller.then((known) => admit(c, known)) : admit(c, caller);
  };
}

function admit(c: GatewayContext, { principal, control }: Caller): void {
  c.set("principal", principal);
  c.set("control", control);
  c.get("exchange").owner = principal.ownerHash;
}

export const operatorOnly: Guard<GatewayEnv> = async (c) => {
  const key = readKey(c.req.raw.headers);
  if (!key || !(await sameKey(key, c.get("config").adminToken))) throw unauthorized("The operator's key is needed.");
  c.get("exchange").owner = "operator";
};
