// What the contract says of a job's ttl, of workers' numbers and of a webhook's body, through the gateway; and what may be read later.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, mintToken, model, watchCanary } from "./fake-upstream.ts";

watchCanary();
afterEach(emptyStorage);

const queries = (upstream: FakeUpstream) => upstream.seen.map(({ url }) => new URL(url).search);
const going = () => new FakeUpstream(({ path }) => json({ id: path.split("/").at(-1), status: "IN_PROGRESS" }));

describe("status?ttl=", () => {
  it("is passed on for a job that is the caller's alone", async () => {
    const upstream = going();
    const job = await upstream.job();
    for (const method of ["GET", "POST"]) {
      expect((await upstream.call(method, `/v2/${model}/status/${job}?ttl=10000`)).status).toBe(200);
    }
    expect(queries(upstream)).toEqual(["?ttl=10000", "?ttl=10000"]);
  });

  it("is passed on for no job that others may have joined", async () => {
    const upstream = going();
    upstream.answer = () => json({ id: "job-1", status: "IN_QUEUE" });
    const request = { input: { prompt: "a lighthouse", seed: 7 } };
    const { id } = await (await upstream.submit("run", request)).json<{ id: string }>();
    await upstream.call("POST", `/v2/${model}/run`, { body: request, key: await upstream.token() });
    upstream.seen.length = 0;
    expect((await upstream.call("GET", `/v2/${model}/status/${id}?ttl=10000`)).status).toBe(200);
    expect(queries(upstream)).toEqual([""]);
  });

  /** Of two users who ask for the same, where that is shared. */
  const sharing = async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }), { REUSE_SCOPE: "shared" });
    const request = { input: { prompt: "a lighthouse", seed: 7 } };
    const { id } = await (await upstream.submit("run", request)).json<{ id: string }>();
    const key = await mintToken(upstream.env, { user: `other-${upstream.origin}` });
    const other = () => upstream.call("POST", `/v2/${model}/run`, { body: request, key });
    return { upstream, path: `/v2/${model}/status/${id}`, other };
  };

  it("is passed on for a job that nobody joins from then on", async () => {
    const { upstream, path, other } = await sharing();
    for (const ttl of [10_000, 20_000]) expect((await upstream.call("GET", `${path}?ttl=${ttl}`)).status).toBe(200);
    upstream.answer = () => json({ id: "job-2", status: "IN_QUEUE" });
    const own = await other();
    expect([own.status, own.headers.get("X-Cache")]).toEqual([200, "MISS"]);
    expect(queries(upstream)).toEqual(["", "?ttl=10000", "?ttl=20000", ""]);
  });

  it("lets nobody join a job that the upstream has forgotten", async () => {
    const { upstream, path, other } = await sharing();
    upstream.answer = ({ path }) =>
      path.includes("/status/") ? json({ error: "job not found" }, 404) : json({ id: "job-2", status: "IN_QUEUE" });
    await expectProblem(await upstream.call("GET", path), "JOB_NOT_FOUND");
    const own = await other();
    expect([own.status, own.headers.get("X-Cache")]).toEqual([200, "MISS"]);
  });

  it("is refused to a token that may look, and not cancel", async () => {
    const upstream = going();
    const job = await upstream.job();
    const user = `user-${upstream.origin}`;
    const path = `/v2/${model}/status/${job}`;
    const looking = await mintToken(upstream.env, { user, operations: ["status"] });
    expect((await upstream.call("GET", path, { key: looking })).status).toBe(200);
    await expectProblem(await upstream.call("GET", `${path}?ttl=10000`, { key: looking }), "OPERATION_FORBIDDEN");
    const cancelling = await mintToken(upstream.env, { user, operations: ["status", "cancel"] });
    expect((await upstream.call("GET", `${path}?ttl=10000`, { key: cancelling })).status).toBe(200);
    expect(queries(upstream)).toEqual(["", "?ttl=10000"]);
  });

  it("that ended a job frees its place soon after its owner was told so", async () => {
    const upstream = going();
    const job = await upstream.job();
    const payer = `user:user-${upstream.origin}`;
    const stub = env.USER_METER.getByName(payer);
    upstream.answer = () => json({ error: "job not found" }, 404);
    await expectProblem(await upstream.call("GET", `/v2/${model}/status/${job}`), "JOB_NOT_FOUND");
    const dueAt = await runInDurableObject(stub, (_meter, state) => state.storage.getAlarm());
    expect((dueAt ?? 0) - Date.now()).toBeLessThanOrEqual(10_000);
  });

  it.each(["9999", "604800001", "abc", "", "1.5", "-1"])("of %j is refused", async (ttl) => {
    const upstream = going();
    const job = await upstream.job();
    await expectProblem(await upstream.call("GET", `/v2/${model}/status/${job}?ttl=${ttl}`), "INVALID_REQUEST");
    expect(upstream.seen).toEqual([]);
  });
});

it("GET /metrics tells of the workers", async () => {
  const metrics = { workers: { ready: 1, running: 0 }, readyWorkers: ["w1"] };
  const upstream = new FakeUpstream(() => json(metrics));
  const response = await upstream.call("GET", `/v2/${model}/metrics`);
  expect([response.status, await response.json()]).toEqual([200, metrics]);
  expect(upstream.seen.map(({ path }) => path)).toEqual([`/v2/${model}/metrics`]);
});

describe("a client's webhook", () => {
  const hook = "https://app.example.org/told";
  const ended = { id: "job-1", status: "COMPLETED", delayTime: 1, executionTime: 2, output: { cost: 0.002 } };
  /** What the client's receiver was told of a job with this input. */
  async function told(input: object): Promise<Record<string, unknown>> {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    const { id } = await (await upstream.submit("run", { input, webhook: hook })).json<{ id: string }>();
    const [submitted] = upstream.seen;
    expect(submitted?.body).not.toContain(hook);
    upstream.answer = ({ url }) => (url === hook ? json({}) : json(ended));
    await upstream.call("GET", `/v2/${model}/status/${id}`);
    await runDurableObjectAlarm(env.USER_METER.getByName(`user:user-${upstream.origin}`));
    await vi.waitFor(() => expect(upstream.seen.some(({ url }) => url === hook)).toBe(true));
    return JSON.parse(upstream.seen.find(({ url }) => url === hook)?.body ?? "");
  }

  it("carries the input as it was sent, and the client's own URL", async () => {
    const input = { prompt: 'a "lighthouse" é€😀', own: [1] };
    expect(await told(input)).toMatchObject({ status: "COMPLETED", delayTime: 1, input, webhook: hook });
  });

  it("carries it after a retry, too; of a job that nobody retried it is erased with its result", async () => {
    const input = { prompt: "a lighthouse" };
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    const payer = env.USER_METER.getByName(`user:user-${upstream.origin}`);
    const told = () =>
      upstream.seen.filter(({ url }) => url === hook).map(({ body }) => JSON.parse(body) as Record<string, unknown>);
    const holdsInput = () =>
      runInDurableObject(payer, (_, { storage }) => {
        const rows = storage.sql.exec<{ bytes: ArrayBuffer }>("SELECT bytes FROM outbox_bodies").toArray();
        return rows.some(({ bytes }) => new TextDecoder().decode(bytes).includes("a lighthouse"));
      });
    const { id } = await (await upstream.submit("run", { input, webhook: hook })).json<{ id: string }>();
    const ends = async (as: object) => {
      const before = told().length;
      upstream.answer = ({ url }) => json(url === hook ? {} : { id: "job-1", ...as });
      await upstream.call("GET", `/v2/${model}/status/${id}`);
      await runDurableObjectAlarm(payer);
      await vi.waitFor(() => expect(told()).toHaveLength(before + 1));
      expect(told().at(-1)).toMatchObject({ ...as, input, webhook: hook });
    };
    const failed = { status: "FAILED", error: "no" };
    await ends(failed);
    for (const end of [failed, { status: "TIMED_OUT" }]) {
      upstream.answer = () => json({ id: "job-1", status: "IN_QUEUE" });
      expect((await upstream.call("POST", `/v2/${model}/retry/${id}`)).status).toBe(200);
      await ends(end);
    }
    expect(await holdsInput()).toBe(true);
    await runInDurableObject(payer, (object) => {
      object.clock = () => Date.now() + 31 * 60_000;
    });
    await runDurableObjectAlarm(payer);
    await vi.waitFor(async () => expect(await holdsInput()).toBe(false));
  });

  it("leaves an input above 64 KB out", async () => {
    const large = await told({ prompt: "x", own: "y".repeat(64 * 1024) });
    expect(large).toMatchObject({ status: "COMPLETED", webhook: hook });
    expect(large).not.toHaveProperty("input");
  });
});

it.each(["run", "runsync"])(
  "what a %s job made may be read later, though it was followed to its end",
  async (operation) => {
    const output = { image_url: "https://media.example.com/a.png", cost: 0.002 };
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "COMPLETED", output }));
    const { id } = await (await upstream.submit(operation)).json<{ id: string }>();
    expect(await (await upstream.call("GET", `/v2/${model}/status/${id}`)).json()).toMatchObject({
      status: "COMPLETED",
    });
    upstream.answer = () => json({ error: "job not found" }, 404);
    const later = await upstream.call("GET", `/v2/${model}/status/${id}`);
    expect([later.status, await later.json()]).toEqual([
      200,
      expect.objectContaining({ id, status: "COMPLETED", output: expect.objectContaining({ cost: 0.002 }) }),
    ]);
    const stranger = await upstream.call("GET", `/v2/${model}/status/${id}`, { key: await upstream.token("eve") });
    await expectProblem(stranger, "JOB_NOT_FOUND");
  },
);
