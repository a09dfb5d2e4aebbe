// A webhook's receiver that sends on to somewhere else: over real sockets, where a redirect would be followed if it was asked for.
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findModel } from "../../src/models/index.ts";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";

const model = "black-forest-labs-flux-1-schnell";
const told: string[] = [];
let elsewhere = "";
let status = 302;

const inside = createServer((request, response) => {
  told.push(`inside ${request.method}`);
  response.end();
});
const receiver = createServer((request, response) => {
  told.push(`receiver ${request.method}`);
  response.writeHead(status, { Location: `${elsewhere}/metadata` }).end();
});
let server: Server;

beforeAll(async () => {
  elsewhere = await listenLocally(inside);
  server = await Server.start({ tmpfs: true });
});
afterAll(async () => {
  await server.stop();
  receiver.close();
  inside.close();
});

async function post(path: string, key: string, body: object): Promise<Record<string, unknown>> {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as Record<string, unknown>;
}

it("attack: a webhook is not delivered to where its receiver redirects it", async () => {
  expect(findModel(model)).toBeDefined();
  const webhook = `${await listenLocally(receiver)}/done`;
  const { token } = await post("/tokens", testSettings.APP_SECRET, { user: "ada", plan: "unlimited" });
  const submit = () => post(`/v2/${model}/run`, String(token), { input: { prompt: "x" }, webhook });
  for (status of [302, 307]) {
    told.length = 0;
    await submit();
    await eventually("a first try", 20_000, async () => told.length > 0);
    // A redirect is no receipt: there is a second try, and what the first one led to would have come before it.
    await eventually("a second try", 30_000, async () => told.length > 1);
    expect(told).toEqual(["receiver POST", "receiver POST"]);
  }
});
