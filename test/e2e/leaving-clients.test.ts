// Clients that leave in the middle, on real sockets: what they began is free again or bound, and costs no more calls.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/serve-eventually.ts";
import { hurry } from "../support/serve-hurried.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";
import { describeOnce, type Gateway, startGateway } from "./support/gateway.ts";

const model = "black-forest-labs-flux-1-schnell";
const small = `{"input":{"prompt":"a lighthouse"}}`;
const large = `{"input":{"prompt":"a lighthouse","image":"${"x".repeat(3_000_000)}"}}`;
const { times, door } = hurry(3);
/** The runtime learns that a client has closed when it writes to it, and the heartbeat writes when nothing else does. */
const heartbeatMs = 15_000 / times;
/** Shorter than the gateway waits for a poll, longer than it pauses between two. */
const heldMs = 8_000 / times;
/** Longer than the pause before the next poll. */
const quietMs = 3_000 / times;
/** Beyond what is tested, on a machine that is busy. */
const patienceMs = 5_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const say = (response: ServerResponse, id: string) => {
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify({ id, status: "IN_PROGRESS", stream: [] }));
};

let answer: Answer;
/** How a job's polls are answered, by its id. */
const watched = new Map<string, Answer>();
let jobs = 0;
const upstream = createServer((request, response) => {
  request.on("error", () => {}).resume();
  const [, ref = ""] = /\/stream\/([\w-]+)/.exec(request.url ?? "") ?? [];
  (watched.get(ref) ?? answer)(request, response);
});

let server: Gateway;
let token: string;

beforeAll(async () => {
  const settings = {
    UPSTREAM_URL: await listenLocally(upstream),
    UPSTREAM_API_KEY: "upstream-key-of-this-test-0123456789",
  };
  server = await startGateway(settings, door);
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = JSON.stringify({ user: "ada", plan: "unlimited" });
  const minted = await fetch(`${server.url}/tokens`, { method: "POST", headers, body });
  ({ token } = (await minted.json()) as { token: string });
});
afterAll(async () => {
  await server.stop();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});

/** A client at its socket, with so much of its body sent. */
function begin(method: string, path: string, key = "", body = "", sent = body.length, of = model): Socket {
  const socket = connect(server.port, "127.0.0.1").on("error", () => {});
  const headers = [`Authorization: Bearer ${token}`, `Content-Length: ${body.length}`, `Idempotency-Key: ${key}`];
  socket.write(`${[`${method} /v2/${of}/${path} HTTP/1.1`, "Host: sluice", ...headers].join("\r\n")}\r\n\r\n`);
  socket.write(body.slice(0, sent));
  return socket;
}

async function submit(body: string, key: string): Promise<{ id?: string; code?: string }> {
  const headers = { Authorization: `Bearer ${token}`, "Idempotency-Key": key };
  const response = await fetch(`${server.url}/v2/${model}/run`, { method: "POST", headers, body });
  return (await response.json()) as { id?: string; code?: string };
}

async function admitted(of: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` };
  const { jobs } = (await (await fetch(`${server.url}/usage`, { headers })).json()) as { jobs: { model: string }[] };
  return jobs.filter((job) => job.model === of).length;
}

const inFull: Answer = (request, response) => request.on("end", () => say(response, `job-${++jobs}`));
const ways = [
  ["closes", (socket: Socket) => socket.destroy()],
  ["resets", (socket: Socket) => socket.resetAndDestroy()],
] as const;

/** The second poll and those after it are held, so that one is under way whenever the gateway learns of the leaving. */
function watchPolls(ref: string) {
  const second = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<void>();
  const polls = { count: 0, second: second.promise, cut: cut.promise };
  watched.set(ref, (_request, response) => {
    polls.count += 1;
    if (polls.count === 1) return say(response, ref);
    second.resolve();
    const timer = setTimeout(() => say(response, ref), heldMs);
    response.on("close", () => {
      clearTimeout(timer);
      if (!response.writableFinished) cut.resolve();
    });
  });
  return polls;
}

describeOnce((round) => {
  describe("a client that leaves a submit", () => {
    it.each(ways)("in the middle of a large body, and %s: its idempotency key is free again", async (how, leave) => {
      const way = `${how}-${round}`;
      const arrived = Promise.withResolvers<void>();
      answer = (request) => void request.once("data", () => arrived.resolve());
      const client = begin("POST", "run", way, large, 1_000_000);
      await arrived.promise;
      leave(client);
      answer = inFull;
      const { id } = await eventually("a free key", patienceMs, async () => {
        const submitted = await submit(large, way);
        return submitted.code !== "IN_PROGRESS" && submitted;
      });
      expect(id).toMatch(/^job-/);
    });

    it.each(ways)("before it was answered, and %s: the same key is the job that was made", async (how, leave) => {
      const way = `${how}-${round}`;
      const held = Promise.withResolvers<ServerResponse>();
      answer = (request, response) => request.on("end", () => held.resolve(response));
      const client = begin("POST", "run", `whole-${way}`, small);
      const response = await held.promise;
      leave(client);
      answer = inFull;
      expect((await submit(small, `whole-${way}`)).code).toBe("IN_PROGRESS");
      say(response, `first-${way}`);
      const { id } = await eventually("the job", patienceMs, async () => {
        const submitted = await submit(small, `whole-${way}`);
        return submitted.code !== "IN_PROGRESS" && submitted;
      });
      expect(id).toMatch(new RegExp(`^first-${way}\\.`));
    });

    it.each(ways)("that another leads, and %s: the same key is the job that they share", async (how, leave) => {
      const way = `${how}-${round}`;
      const held = Promise.withResolvers<ServerResponse>();
      answer = (request, response) => request.on("end", () => held.resolve(response));
      const shared = `{"input":{"prompt":"a lighthouse that ${way}","seed":7}}`;
      const leader = begin("POST", "run", `leader-${way}`, shared);
      const response = await held.promise;
      const before = await admitted(model);
      const rider = begin("POST", "run", `rider-${way}`, shared);
      await eventually("the rider", patienceMs, async () => (await admitted(model)) > before);
      leave(rider);
      await pause(500);
      say(response, `shared-${way}`);
      const { id } = await eventually("the job", patienceMs, async () => {
        const submitted = await submit(shared, `rider-${way}`);
        return submitted.code !== "IN_PROGRESS" && submitted;
      });
      expect(id).toMatch(new RegExp(`^shared-${way}\\.`));
      leader.destroy();
    });
  });

  it.each(ways)("a client that leaves a large chat, and %s: nothing stays reserved", async (how, leave) => {
    const way = `${how}-${round}`;
    const arrived = Promise.withResolvers<void>();
    answer = (request) => void request.once("data", () => arrived.resolve());
    const client = begin("POST", "openai/v1/chat/completions", `chat-${way}`, large, 1_000_000, "gpt-oss-120b");
    await arrived.promise;
    expect(await admitted("gpt-oss-120b")).toBe(1);
    leave(client);
    await eventually("an empty list", patienceMs, async () => (await admitted("gpt-oss-120b")) === 0);
  });

  describe("a client that leaves its events", () => {
    it.concurrent.each(ways)("and %s: is noticed by the next heartbeat, and polled for no more", async (how, leave) => {
      answer = inFull;
      const { id = "" } = await submit(small, `watched-${how}-${round}`);
      const polls = watchPolls(id.replace(/\..*/, ""));
      const begun = performance.now();
      const client = begin("GET", `events/${id}`);
      await polls.second;
      leave(client);
      await polls.cut;
      const tookMs = performance.now() - begun;
      expect(tookMs).toBeLessThan(heartbeatMs + patienceMs);
      expect(tookMs > heartbeatMs - 1_000).toBe(how === "closes");
      const polled = polls.count;
      await pause(quietMs);
      expect(polls.count).toBe(polled);
    });
  });
});
