// Loads a server for a while, from a thread beside the one that measures.
import { Worker } from "node:worker_threads";
import { median, quantile } from "../statistics.ts";

export interface Load {
  readonly port: number;
  /** Whole requests as HTTP/1.1 has them, asked in turn. */
  readonly requests: readonly string[];
  readonly connections: number;
  /** It goes on for so long, or until so many requests were asked. */
  readonly until: { readonly durationMs: number } | { readonly asked: number };
  /** How many answers may be no success; without it, as many as there are connections. */
  readonly faultsAllowed?: number;
}

export interface Loaded {
  readonly answered: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Told {
  readonly times: Float64Array;
  readonly seconds: number;
  /** Whole answers that were no success, and how often each came. */
  readonly faults: readonly (readonly [string, number])[];
}

/**
 * Fails where more answers are not 200 than there are connections: a refusal is quick, and would look like speed. Each
 * connection that a server holds to the upstream may have idled too long while the others were measured.
 */
export async function load(how: Load): Promise<Loaded> {
  const thread = new Worker(new URL("./load-thread.ts", import.meta.url), { workerData: how });
  const told = await new Promise<Told>((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
    thread.once("exit", () => reject(new Error("the load ended without a word")));
  });
  const [fault] = told.faults;
  const failed = told.faults.reduce((sum, [, times]) => sum + times, 0);
  if (fault && failed > (how.faultsAllowed ?? how.connections))
    throw new Error(`${failed} of ${told.times.length} answers are no success, such as:\n${fault[0]}`);
  const answered = told.times.length;
  const times = [...told.times];
  return { answered, perSecond: answered / told.seconds, p50Ms: median(times), p99Ms: quantile(times, 0.99) };
}

/** A request as it goes over the wire. */
export function requestText(
  method: "GET" | "POST",
  path: string,
  token: string,
  body = "",
  more: Readonly<Record<string, string>> = {},
): string {
  const headers = {
    Host: "gateway.example.com",
    Authorization: `Bearer ${token}`,
    Accept: "*/*",
    ...more,
    ...(body !== "" && { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `${[`${method} ${path} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}
