// Notices: owed from the moment of a final state, tried as the contract says, never in the way of a job.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";
import { type Endpoint, endpoint, eventually, noon, pass, setTime } from "./support/endpoint.ts";

const hook = "https://app.example.com/hook?who=me";
const input = { prompt: "a cat", list: [1, 2] };
const s3Config = { accessId: "id", accessSecret: "top secret", bucketName: "b", endpointUrl: "https://s3.example.com" };

interface Received {
  readonly url: string;
  readonly method: string;
  readonly type: string | null;
  readonly body: Record<string, unknown>;
}

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** The outside world: what it got, and what it answers, the last answer again and again. */
function receive(...answers: (number | "no answer")[]): Received[] {
  const received: Received[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    const { url, method, headers } = request as Request;
    const body = (await (request as Request).json()) as Record<string, unknown>;
    received.push({ url, method, type: headers.get("Content-Type"), body });
    const answer = answers[Math.min(received.length, answers.length) - 1] ?? 200;
    if (answer === "no answer") throw new TypeError("connection refused");
    return new Response(null, { status: answer, headers: { Location: "https://elsewhere.example.com" } });
  });
  return received;
}

function owed(e: Endpoint): Promise<{ tries: number; dueAt: number }[]> {
  return runInDurableObject(e.queue(), (_, { storage }) =>
    storage.sql.exec<{ tries: number; dueAt: number }>("SELECT tries, dueAt FROM outbox").toArray(),
  );
}

/** Rings, and waits until what was sent is settled. */
async function ring(e: Endpoint): Promise<void> {
  await e.ring();
  await eventually(async () => {
    const rows = await owed(e);
    expect(rows.every(({ dueAt }) => dueAt - Date.now() <= 10_000)).toBe(true);
  });
}

async function finished(e: Endpoint, webhook = hook): Promise<string> {
  const id = await e.submit({ input, webhook, s3Config });
  await e.take();
  await e.done(id);
  return id;
}

describe("a notice", () => {
  it("carries the final status, the input and the webhook, and no secret", async () => {
    const received = receive(200);
    const e = endpoint();
    const id = await finished(e);
    const status = await e.get(`status/${id}`);
    await ring(e);
    expect(received).toEqual([
      { url: hook, method: "POST", type: "application/json", body: { ...status, input, webhook: hook } },
    ]);
    expect(status).toMatchObject({ status: "COMPLETED", output: "made" });
    expect(await owed(e)).toEqual([]);
  });

  it.each<[string, (e: Endpoint, id: string) => Promise<unknown>]>([
    ["CANCELLED", (e, id) => e.post(`cancel/${id}`)],
    ["FAILED", async (e, id) => e.done((await e.take())[0] ?? id, { error: "broke" })],
    [
      "TIMED_OUT",
      async (e) =>
        e
          .take()
          .then(() => pass(5000))
          .then(e.ring),
    ],
  ])("follows %s too", async (state, bring) => {
    const received = receive(200);
    const e = endpoint();
    const id = await e.submit({ input, webhook: hook, policy: { executionTimeout: 5000 } });
    await bring(e, id);
    await ring(e);
    expect(received.map(({ body }) => body["status"])).toEqual([state]);
  });

  it("does not follow a deletion by ttl, nor a purge", async () => {
    const received = receive(200);
    const e = endpoint();
    await e.submit({ input, webhook: hook, policy: { ttl: 10_000 } });
    pass(10_000);
    await ring(e);
    await e.submit({ input, webhook: hook });
    await e.post("purge-queue");
    await ring(e);
    expect(received).toEqual([]);
  });

  it("follows each end of a job that was retried", async () => {
    const received = receive(200);
    const e = endpoint();
    const id = await e.submit({ input, webhook: hook });
    await e.done((await e.take())[0] ?? "", { error: "broke" });
    await e.post(`retry/${id}`);
    await e.done((await e.take())[0] ?? "");
    await ring(e);
    await eventually(async () => expect(received.map(({ body }) => body["status"])).toEqual(["FAILED", "COMPLETED"]));
  });

  it.each([200, 201, 204, 299])("that is answered with %i was received", async (answer) => {
    const received = receive(answer === 299 ? 299 : answer);
    const e = endpoint();
    await finished(e);
    await ring(e);
    expect([received.length, await owed(e)]).toEqual([1, []]);
  });

  it.each([302, 400, 500, "no answer"] as const)(
    "that meets %s is tried twice more, ten seconds apart",
    async (answer) => {
      const received = receive(answer);
      const e = endpoint();
      const id = await finished(e);
      for (const tries of [1, 2, 3]) {
        await ring(e);
        expect(received).toHaveLength(tries);
        if (tries < 3) expect(await owed(e)).toEqual([{ tries, dueAt: Date.now() + 10_000 }]);
        pass(9999);
        await ring(e);
        expect(received).toHaveLength(tries);
        pass(1);
      }
      expect(await owed(e)).toEqual([]);
      expect(await e.get(`status/${id}`)).toMatchObject({ status: "COMPLETED" });
    },
  );

  it("survives the object, and its job", async () => {
    const received = receive(500, 200);
    const e = endpoint();
    const id = await finished(e);
    await ring(e);
    await e.get(`status/${id}?ttl=10000`);
    pass(10_000);
    await evictDurableObject(e.queue());
    expect(await e.get(`status/${id}`)).toMatchObject({ code: "JOB_NOT_FOUND" });
    await ring(e);
    expect(received[1]?.body).toMatchObject({ id, status: "COMPLETED", output: "made", input });
    const left = await runInDurableObject(e.queue(), (_, { storage }) =>
      storage.sql.exec("SELECT bytes FROM payloads").toArray(),
    );
    expect(left).toEqual([]);
  });

  it("whose last try died with the object is given up, not tried a fourth time", async () => {
    const received = receive(200);
    const e = endpoint();
    await finished(e);
    await runInDurableObject(e.queue(), (_, { storage }) => void storage.sql.exec("UPDATE outbox SET tries = 3"));
    await ring(e);
    expect([received.length, await owed(e)]).toEqual([0, []]);
  });

  it("to our own origin stays inside the Worker", async () => {
    const received = receive(200);
    const e = endpoint();
    await finished(e, "https://sluice.test/healthz");
    await e.ring();
    await eventually(async () => expect((await owed(e))[0]).toMatchObject({ tries: 1, dueAt: Date.now() + 10_000 }));
    expect(received).toEqual([]);
  });

  it("that is not answered holds up neither the queue nor another notice", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    const urls: string[] = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
      urls.push((request as Request).url);
      return urls.length === 1 ? promise : new Response();
    });
    const e = endpoint();
    await finished(e);
    await e.ring();
    await eventually(async () => expect(urls).toHaveLength(1));
    await finished(e, "https://other.example.com/");
    await e.ring();
    await eventually(async () => expect(await owed(e)).toHaveLength(1));
    expect(urls[1]).toBe("https://other.example.com/");
    resolve(new Response());
    await eventually(async () => expect(await owed(e)).toEqual([]));
  });
});
