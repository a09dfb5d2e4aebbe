// In every test file on Node: the canary hears what the served processes answer and write.
import { overheard } from "./canary.ts";
import { watchForKeys } from "./canary-watch.ts";

watchForKeys();

const served = /^http:\/\/(127\.0\.0\.1|localhost)[:/]/;
const heard = Symbol.for("a fetch that the canary hears");
const { fetch } = globalThis;

/** Files share a process: it listens once. */
if (!(heard in fetch)) {
  const listening: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    return served.test(response.url) ? overheard(new URL(response.url).pathname, response) : response;
  };
  globalThis.fetch = Object.assign(listening, { [heard]: true });
}
