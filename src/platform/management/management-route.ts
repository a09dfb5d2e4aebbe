// The routes of the management interface: each is one statement with its handler. All stand behind the account's key.
import * as z from "zod";
import type { Remote } from "../../durable/remote.ts";
import { describeFaults, Problem } from "../../errors.ts";
import { errorsOf } from "../../http/call-route.ts";
import type { Said, Statement } from "../../http/route.ts";
import { authenticate } from "../auth.ts";
import { PlatformCall } from "../call.ts";
import { readJsonBody } from "../large-body.ts";
import { type PlatformRoute, platformRoutesFor } from "../platform-route.ts";
import {
  type AccountCalls,
  accountOf,
  type CatalogueCalls,
  catalogueOf,
  managesWithinMs,
  orUnavailable,
} from "./account-calls.ts";

export const managementPath = "/platform/v1";
export const managementErrors = errorsOf("management");

export class ManagementCall extends PlatformCall {
  /** The caller's account. A stub is made anew for each call, since one that broke stays broken. */
  readonly records = (): Remote<AccountCalls> => orUnavailable(accountOf(this.env, this.account, managesWithinMs));

  /** The public templates of all accounts. */
  readonly catalogue = (): Remote<CatalogueCalls> => orUnavailable(catalogueOf(this.env));
}

type Schema = z.ZodType | undefined;
type Output<S extends Schema> = S extends z.ZodType ? z.output<S> : undefined;

/** `path` goes on from `/v1`, and `id` is the contract's own name of the operation. */
interface ManagementStatement<P extends Schema, Q extends Schema, B extends Schema>
  extends Omit<Statement<P, Q, undefined>, "access" | "body" | "json"> {
  readonly id: string;
  readonly body?: B;
}

interface ManagementSaid<P extends Schema, Q extends Schema, B extends Schema> extends Said<P, Q, undefined> {
  readonly body: Output<B>;
}

const route = platformRoutesFor((c) => new ManagementCall(c));
const guards = [managementErrors, authenticate];
const always = ["UNAUTHORIZED", "UNAVAILABLE"] as const;

/** What every route may be refused with need not be stated. */
export function managementRoute<
  P extends Schema = undefined,
  Q extends Schema = undefined,
  B extends Schema = undefined,
>(
  statement: ManagementStatement<P, Q, B>,
  handle: (call: ManagementCall, said: ManagementSaid<P, Q, B>) => Response | Promise<Response>,
): PlatformRoute {
  const { body, errors = [], ...others } = statement;
  const whole = {
    ...others,
    access: "platform",
    path: `${managementPath}${statement.path}`,
    errors: [...always, ...errors],
    ...(body && { body }),
  } as Statement<P, Q, undefined>;
  return route(whole, guards, async (call, said) => {
    const read = body && (await readBody(call.request, body));
    return handle(call, { ...said, body: read as Output<B> });
  });
}

const bodyBytes = 1024 * 1024;

async function readBody<T extends z.ZodType>(request: Request, schema: T): Promise<z.output<T>> {
  const checked = z.safeParse(schema, await readJsonBody(request, bodyBytes));
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  return checked.data;
}
