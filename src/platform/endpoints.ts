// Which endpoints there are, and the queue of each: public models, the extra ones of ENDPOINTS, those of the account.
import type { MiddlewareHandler } from "hono";
import { Problem } from "../errors.ts";
import { findModel } from "../models/index.ts";
import { type Remote, remote } from "../wire/remote.ts";
import { accountOf } from "./accounts.ts";
import type { PlatformEnv } from "./auth.ts";
import { isKnown } from "./known-endpoints.ts";
import type { Account } from "./management/account.ts";
import type { EndpointQueue } from "./queue/endpoint-queue.ts";

export interface EndpointEnv extends PlatformEnv {
  Variables: PlatformEnv["Variables"] & { queue: () => Remote<EndpointQueue> };
}

const endpointName = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}$/;

/** A queue belongs to an account: nobody sees the jobs of another. */
export function queueName(account: string, endpoint: string): string {
  return `${account}/${endpoint}`;
}

export function endpointOf(name: string | undefined): string {
  return name?.slice(name.indexOf("/") + 1) ?? "";
}

/** Sets the endpoint's queue, or answers 404. A stub is made anew for each call, since one that broke stays broken. */
export const endpoint: MiddlewareHandler<EndpointEnv> = async (c, next) => {
  const name = c.req.param("endpoint") ?? "";
  const account = c.get("account");
  const shipped = findModel(name) || c.get("config").endpoints.includes(name);
  if (!endpointName.test(name) || !(shipped || (await isManaged(c.env.ACCOUNT, account, name)))) {
    throw new Problem("ENDPOINT_NOT_FOUND", "endpoint not found");
  }
  const exchange = c.get("exchange");
  exchange.model = name;
  exchange.owner = account;
  const namespace = c.env.ENDPOINT_QUEUE;
  c.set("queue", () => remote(namespace, queueName(account, name)));
  await next();
};

function isManaged(accounts: DurableObjectNamespace<Account>, account: string, name: string): Promise<boolean> {
  return isKnown(queueName(account, name), () => accountOf(accounts, account).hasEndpoint(name));
}
