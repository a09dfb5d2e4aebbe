// Loads a server for a while, from a thread beside the one that measures.
import { Worker } from "node:worker_threads";
import { median } from "../statistics.ts";

export interface Load {
  readonly port: number;
  /** Whole requests as HTTP/1.1 has them, asked in turn. */
  readonly requests: readonly string[];
  readonly connections: number;
  readonly durationMs: number;
}

export interface Loaded {
  readonly answered: number;
  readonly perSecond: number;
  readonly p50Ms: number;
}

interface Told {
  readonly times: Float64Array;
  readonly seconds: number;
  /** Whole answers that were no success, and how often each came. */
  readonly faults: readonly (readonly [string, number])[];
}

/** Fails where any answer is not 200: a refusal is quick, and would look like speed. */
export async function load(how: Load): Promise<Loaded> {
  const thread = new Worker(new URL("./load-thread.ts", import.meta.url), { workerData: how });
  const told = await new Promise<Told>((resolve, reject) => {
    thread.once("message", resolve);
    thread.once("error", reject);
    thread.once("exit", () => reject(new Error("the load ended without a word")));
  });
  const [fault] = told.faults;
  if (fault) throw new Error(`${fault[1]} of ${told.times.length} answers are no success, such as:\n${fault[0]}`);
  const answered = told.times.length;
  return { answered, perSecond: answered / told.seconds, p50Ms: median([...told.times]) };
}

/** A request as it goes over the wire. */
export function requestText(method: "GET" | "POST", path: string, token: string, body = ""): string {
  const head = [`${method} ${path} HTTP/1.1`, "Host: gateway.example.com", `Authorization: Bearer ${token}`];
  const content = body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`];
  return `${[...head, "Accept: */*", ...content].join("\r\n")}\r\n\r\n${body}`;
}
