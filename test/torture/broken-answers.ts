// How the hostile upstream breaks an answer, as the request's fate says.
import type { ServerResponse } from "node:http";
import type { Fault } from "./chance.ts";
import { spelledKey, upstreamKey } from "./key-watch.ts";
import { pause } from "./pace.ts";

const json = { "Content-Type": "application/json" };
/** So much drips, and the rest comes at once. */
const dripped = 40;

export function send(response: ServerResponse, status: number, answer: object | string): void {
  const text = typeof answer === "string" ? answer : JSON.stringify(answer);
  response.writeHead(status, json).end(text);
}

/** The answer's own members, and the key among them. */
export function withKey(text: string, n: number): string {
  return `${text.slice(0, -1)},"note":${spelledKey(n)}}`;
}

export async function breakAnswer(response: ServerResponse, fault: Fault, text: string, n: number): Promise<void> {
  switch (fault) {
    case "resets-late":
      return void response.destroy();
    case "half-json":
      return void response.writeHead(200, json).end(text.slice(0, -9));
    case "html":
      return void response.writeHead(200, { "Content-Type": "text/html" }).end("<h1>It works</h1>");
    case "fails":
      return send(response, 500, { error: "out of memory" });
    case "cuts-short":
      response.writeHead(200, { ...json, "Content-Length": text.length + 100 }).write(text);
      await pause(20);
      return void response.destroy();
    case "says-the-key":
      response.writeHead(200, { ...json, "X-Debug": upstreamKey, "Set-Cookie": `key=${upstreamKey}` });
      return void response.end(withKey(text, n));
    case "drips":
      response.writeHead(200, { ...json, "Content-Length": text.length });
      for (const character of text.slice(0, dripped)) {
        response.write(character);
        await pause(2);
      }
      return void response.end(text.slice(dripped));
    default:
      return send(response, 200, text);
  }
}

/** Before anything was taken; false where the fault is none of these. */
export function refuseBefore(response: ServerResponse, fault: Fault): boolean {
  if (fault === "refuses") send(response, 400, { error: "not like this" });
  else if (fault === "busy") send(response, 429, { error: "too many" });
  else if (fault === "resets-early") response.destroy();
  else return false;
  return true;
}
