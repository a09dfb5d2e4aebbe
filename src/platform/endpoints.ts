// Which endpoints there are: public models, the extra ones of ENDPOINTS, those of the account.
import { Problem } from "../errors.ts";
import { BoundedMemory } from "../isolate/bounded-memory.ts";
import { findModel } from "../models/index.ts";
import type { PlatformCall } from "./call.ts";
import type { EndpointCall } from "./endpoint-call.ts";
import { accountOf, type KnownEndpoint, orUnavailable } from "./management/account-calls.ts";
import type { Guard } from "./platform-route.ts";
import { queueName } from "./queue/queue-name.ts";

const endpointName = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}$/;

const rememberedMs = 10_000;
/** An account's own, by the name of its queue: the queue itself refuses where one was deleted since. */
const seen = new BoundedMemory<KnownEndpoint>(1024 * 1024);

/** Answers 404 where the account has no such endpoint, and 400 where it has no queue. Stands behind `authenticate`. */
export const knownEndpoint: Guard<EndpointCall> = async (call) => {
  const known = await findEndpoint(call, call.endpoint);
  if (!known) throw noEndpoint();
  if (known.workerUrls) throw new Problem("INVALID_REQUEST", "not allowed for LB API");
  call.exchange.model = call.endpoint;
};

export function noEndpoint(): Problem {
  return new Problem("ENDPOINT_NOT_FOUND", "endpoint not found");
}

/** Undefined where there is none. `anew` asks the account even about an endpoint that this isolate remembers. */
export async function findEndpoint(
  { env, account, config }: PlatformCall,
  name: string,
  anew = false,
): Promise<KnownEndpoint | undefined> {
  if (!endpointName.test(name)) return undefined;
  if (findModel(name)) return {};
  if (config.endpoints.has(name)) return { workerUrls: config.endpoints.get(name) };
  const [key, now] = [queueName(account, name), Date.now()];
  const known =
    (anew ? undefined : seen.get(key, now)) ?? (await orUnavailable(accountOf(env, account)).knownEndpoint(name));
  if (known) seen.set(key, known, now + rememberedMs, JSON.stringify(known).length);
  return known;
}
