// A hundred identical requests on real sockets: the first one's client leaves in the middle, and the others get their picture.
import { createServer, type IncomingMessage, request as open, type ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";

const model = "black-forest-labs-flux-1-schnell";
const crowd = 100;
/** Beyond what is tested, on a machine that is busy. */
const patienceMs = 30_000;
const costUsd = 0.0025;
const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Array<number>(120).fill(7)]);

const publicUrl = "https://gateway.example.com";
/** The model service: it holds what the test has not let go of yet. */
const asked: string[] = [];
let held: Record<"run" | "status-sync", PromiseWithResolvers<void>>;
const upstream = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (part: string) => (body += part));
  request.on("end", () => void answer(request, body, response));
});
let upstreamUrl = "";
/** Where the job's end is to be told. */
let webhook = "";

async function answer({ url = "" }: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
  if (url.startsWith("/pictures/")) return void response.setHeader("Content-Type", "image/png").end(png);
  const [, , , operation = ""] = url.split(/[/?]/);
  asked.push(operation);
  response.setHeader("Content-Type", "application/json");
  if (operation === "run" || operation === "status-sync") await held[operation].promise;
  if (operation === "run") ({ webhook } = JSON.parse(body) as { webhook: string });
  response.end(JSON.stringify(operation === "run" ? { id: "job-1", status: "IN_QUEUE" } : ended()));
}

function ended() {
  const output = { image_url: `${upstreamUrl}/pictures/a.png`, cost: costUsd };
  return { id: "job-1", status: "COMPLETED", output, delayTime: 1, executionTime: 2 };
}

/** The service's own notice, as it sends it to whoever asked for one. */
async function notify(): Promise<void> {
  const told = await fetch(server.url + new URL(webhook).pathname, { method: "POST", body: JSON.stringify(ended()) });
  expect(told.status).toBe(200);
}

const count = (operation: string) => asked.filter((one) => one === operation).length;

let server: Server;
beforeAll(async () => {
  upstreamUrl = await listenLocally(upstream);
  const settings = {
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_API_KEY: "upstream-key-of-this-test-0123456789",
    MEDIA_HOSTS: new URL(upstreamUrl).host,
    PUBLIC_URL: publicUrl,
  };
  server = await Server.start({ settings });
});
afterEach(() => {
  for (const { resolve } of Object.values(held)) resolve();
});
afterAll(async () => {
  await server.stop();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});

interface Job {
  readonly status: string;
  readonly output: { readonly image_url: string };
}

/** A client with a connection of its own. */
function paint(token: string) {
  const options = { method: "POST", agent: false, headers: { Authorization: `Bearer ${token}` } };
  const sent = open(`${server.url}/v2/${model}/runsync`, options);
  const answered = new Promise<{ cache: unknown; job: Job }>((resolve, reject) => {
    sent.once("error", reject).once("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.once("end", () => resolve({ cache: response.headers["x-cache"], job: JSON.parse(text) as Job }));
    });
  });
  sent.end(JSON.stringify({ input: { prompt: "a lighthouse", seed: 7, width: 256, height: 256 } }));
  return { leave: (way: "destroy" | "resetAndDestroy") => void sent.socket?.[way](), answered };
}

interface Usage {
  readonly jobs: readonly { costUsd: number | null; endedAt: string | null }[];
}

async function get<T>(path: string, token: string): Promise<T> {
  return (await (await fetch(server.url + path, { headers: { Authorization: `Bearer ${token}` } })).json()) as T;
}

describe("the first of a hundred", () => {
  it.each([
    ["closes before the model service took its job", "run", "destroy"],
    ["resets before the model service took its job", "run", "resetAndDestroy"],
    ["closes while its job runs", "status-sync", "destroy"],
    ["resets while its job runs", "status-sync", "resetAndDestroy"],
  ] as const)("%s: one call, one charge, a picture for all others", { timeout: 2 * patienceMs }, async (...one) => {
    const [, moment, way] = one;
    held = { run: Promise.withResolvers(), "status-sync": Promise.withResolvers() };
    asked.length = 0;
    const token = await mint(`${moment}-${way}`);
    if (moment !== "run") held.run.resolve();

    const first = paint(token);
    const left = first.answered.then(
      () => "answered",
      () => "left",
    );
    await eventually("the first one's call", patienceMs, async () => count(moment) === 1);
    const others = Array.from({ length: crowd - 1 }, () => paint(token));
    await eventually("the crowd", patienceMs, async () => (await jobsOf(token)).length === crowd);
    if (moment !== "run") await eventually("all to wait", patienceMs, async () => count(moment) === crowd);
    first.leave(way);
    expect(await left).toBe("left");
    for (const { resolve } of Object.values(held)) resolve();

    const answers = await Promise.all(others.map(({ answered }) => answered));
    await notify();
    expect(count("run")).toBe(1);
    expect(new Set(answers.map(({ cache }) => cache))).toEqual(new Set(["JOINED"]));
    expect(new Set(answers.map(({ job }) => job.status))).toEqual(new Set(["COMPLETED"]));
    const links = [...new Set(answers.map(({ job }) => job.output.image_url))];
    expect(links).toHaveLength(1);
    const picture = await fetch(server.url + new URL(links[0] ?? "").pathname);
    expect(Buffer.from(await picture.arrayBuffer()).equals(png)).toBe(true);
    const { images } = await get<{ images: { url: string }[] }>("/images", token);
    expect(images.map(({ url }) => url)).toEqual(links);
    const settled = await eventually("all to be settled", patienceMs, async () => {
      const jobs = await jobsOf(token);
      return jobs.every(({ endedAt }) => endedAt !== null) && jobs;
    });
    const costs = settled.map((job) => job.costUsd).filter((cost) => cost !== 0);
    expect(costs).toEqual([costUsd]);
  });
});

async function jobsOf(token: string): Promise<Usage["jobs"]> {
  return (await get<Usage>("/usage", token)).jobs;
}

async function mint(user: string): Promise<string> {
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = JSON.stringify({ user, plan: "unlimited" });
  const minted = await fetch(`${server.url}/tokens`, { method: "POST", headers, body });
  return ((await minted.json()) as { token: string }).token;
}
