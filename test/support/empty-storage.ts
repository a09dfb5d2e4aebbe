// Empties what the bindings keep, between tests. The pool's own reset() passes over an object that is not in memory, and
// one that a test evicted, or that nobody called for ten seconds, is not: its rows would meet the next test.
import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";

type Namespace = DurableObjectNamespace<undefined>;

const { USER_METER, BUDGET, CONTROL, JOB_MEDIA, SHARED_REQUEST, ENDPOINT_QUEUE, ACCOUNT, IMAGES, MEDIA } = env;
const namespaces = [
  USER_METER,
  BUDGET,
  CONTROL,
  JOB_MEDIA,
  SHARED_REQUEST,
  ENDPOINT_QUEUE,
  ACCOUNT,
] as unknown as Namespace[];

/** The ids of the objects that were asked for since the last time, by whomever. */
const asked = new Set<string>();

const prototype: Pick<Namespace, "get" | "getByName"> = Object.getPrototypeOf(USER_METER);
const { get, getByName } = prototype;
prototype.get = function (this: Namespace, ...args) {
  return noted(get.apply(this, args));
};
prototype.getByName = function (this: Namespace, ...args) {
  return noted(getByName.apply(this, args));
};

function noted<T extends DurableObjectStub>(stub: T): T {
  asked.add(stub.id.toString());
  return stub;
}

export async function emptyStorage(): Promise<void> {
  const objects = [...asked].map(wake);
  await Promise.all([...objects, IMAGES.list({ limit: 1 }), MEDIA.list({ limit: 1 })]);
  await reset();
  asked.clear();
}

/** One that cannot wake has nothing to tell. */
async function wake(id: string): Promise<void> {
  await runInDurableObject(stubOf(id), () => undefined).catch(() => undefined);
}

function stubOf(id: string): DurableObjectStub {
  for (const namespace of namespaces) {
    try {
      return get.call(namespace, namespace.idFromString(id));
    } catch {
      // An id is of one namespace.
    }
  }
  throw new Error(`${id} is of no namespace`);
}
