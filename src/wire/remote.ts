// A Durable Object as its callers see it: the same methods, each a promise.

/** The runtime's own stub type splits a union of results into a union of promises, which no caller can await. */
export type Remote<T> = {
  [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: T[K] extends (
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

/** An object's answer, for another to hand on: as it came, it would keep that one in memory until its caller lets go. */
export function handOn<T extends object>(answer: T): T {
  return { ...answer };
}

export function remote<T extends Rpc.DurableObjectBranded>(
  namespace: DurableObjectNamespace<T>,
  name: string,
): Remote<T> {
  return namespace.getByName(name) as unknown as Remote<T>;
}
