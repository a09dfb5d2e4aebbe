// A webhook's receiver that sends on to somewhere else: over real sockets, where a redirect would be followed if it was asked for.
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findModel } from "../../src/models/index.ts";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";

const model = "black-forest-labs-flux-1-schnell";
const statuses = [302, 307];
/** The paths that were asked for, by the method. */
const told: string[] = [];
let elsewhere = "";

const inside = createServer((request, response) => {
  told.push(`inside ${request.method} ${request.url}`);
  response.end();
});
const receiver = createServer((request, response) => {
  told.push(`receiver ${request.method} ${request.url}`);
  response.writeHead(Number(request.url?.slice(1)), { Location: `${elsewhere}${request.url}` }).end();
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
  const receives = await listenLocally(receiver);
  const { token } = await post("/tokens", testSettings.APP_SECRET, { user: "ada", plan: "unlimited" });
  const attack = async (status: number) => {
    const input = { prompt: String(status), width: 256, height: 256 };
    await post(`/v2/${model}/run`, String(token), { input, webhook: `${receives}/${status}` });
    const heard = () => told.filter((line) => line.endsWith(`/${status}`));
    await eventually("a first try", 20_000, async () => heard().length > 0);
    // A redirect is no receipt: there is a second try, and what the first one led to would have come before it.
    await eventually("a second try", 30_000, async () => heard().length > 1);
    expect(heard()).toEqual(Array(2).fill(`receiver POST /${status}`));
  };
  await Promise.all(statuses.map(attack));
});
