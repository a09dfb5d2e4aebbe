// The guards: who calls is known behind `authenticate`, and is the operator behind `operatorOnly`.
import { readKey, sameKey } from "../../http/keys.ts";
import type { Call } from "../call.ts";
import type { Guard } from "../gateway-route.ts";
import { readControl } from "../operator-settings/control-reader.ts";
import type { ControlView } from "../operator-settings/control-view.ts";
import { identityOf } from "./identity.ts";
import type { Principal } from "./principal.ts";
import { revoked, unauthorized } from "./refused-token.ts";

export interface Caller {
  readonly principal: Principal;
  readonly control: ControlView;
}

/** Throws the Problem that the caller is answered with. No promise for whom the isolate remembers. */
export function identifyCaller(call: Call): Caller | Promise<Caller> {
  const key = readKey(call.request.headers);
  if (key === undefined) throw unauthorized("A token is needed: Authorization: Bearer <token>.");
  const now = call.exchange.startedAt;
  const known = identityOf(call.config).recall(key, now);
  if (!known) return identify(call, key, now);
  const control = readControl(call);
  return control instanceof Promise
    ? control.then((read) => unlessRevoked(known, read))
    : unlessRevoked(known, control);
}

async function identify(call: Call, key: string, now: number): Promise<Caller> {
  const principal = await identityOf(call.config).identify(key, now);
  return unlessRevoked(principal, await readControl(call));
}

function unlessRevoked(principal: Principal, control: ControlView): Caller {
  if (control.isRevoked(principal)) throw revoked();
  return { principal, control };
}

export const authenticate: Guard = (call) => {
  const caller = identifyCaller(call);
  return caller instanceof Promise
    ? call.timed("identity", caller).then((known) => admit(call, known))
    : admit(call, caller);
};

function admit(call: Call, { principal, control }: Caller): void {
  call.principal = principal;
  call.control = control;
  call.exchange.owner = principal.ownerHash;
}

export const operatorOnly: Guard = async ({ request, config, exchange }) => {
  const key = readKey(request.headers);
  if (!key || !(await sameKey(key, config.adminToken))) throw unauthorized("The operator's key is needed.");
  exchange.owner = "operator";
};
