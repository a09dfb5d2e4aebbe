// An account's object as the routes call it: where it cannot be reached, the caller may come again.
import { Problem } from "../errors.ts";
import { type Remote, remote } from "../wire/remote.ts";
import type { Account } from "./management/account.ts";

type Method = (...args: readonly unknown[]) => Promise<unknown>;

export function accountOf(namespace: DurableObjectNamespace<Account>, account: string): Remote<Account> {
  const stub = remote(namespace, account);
  return new Proxy(stub, {
    get:
      (_, method: keyof Remote<Account>) =>
      (...args: readonly unknown[]) =>
        reached(Reflect.apply(stub[method] as Method, stub, args)),
  });
}

/** A call that failed says nothing of what it did. */
async function reached<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    console.warn(JSON.stringify({ account: "no answer", error: error instanceof Error ? error.message : "unknown" }));
    throw new Problem("UNAVAILABLE", "the account cannot be reached", { "Retry-After": "1" });
  }
}
