// Endpoints: made here, live at once on the job interface, steered by their settings, gone for good.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { dataCenterIds } from "../../../src/platform/management/vocabulary.ts";
import type { EndpointQueue } from "../../../src/platform/queue/endpoint-queue.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ask, endpoint, ids, type Json, pod, refused, send, template, volume } from "./management-client.ts";

afterEach(emptyStorage);

const list = (query = "") => ask<Json[]>("north", "GET", `/endpoints${query}`);
const job = async (id: string, operation: string, body?: unknown) => {
  const { status, json } = await send("north", body === undefined ? "GET" : "POST", `/v2/${id}/${operation}`, body);
  return { status, ...(json as object) } as { status: number } & Record<string, unknown>;
};
const run = async (id: string) => {
  const { json } = await send("north", "POST", `/v2/${id}/run`, { input: { text: "x" } });
  return (json as Json).id;
};
const take = async (id: string, worker: string) => {
  const { json } = await send("north", "GET", `/v2/${id}/job-take/${worker}`);
  return (json as Json).id;
};
const done = (id: string, worker: string, jobId: string) =>
  send("north", "POST", `/v2/${id}/job-done/${worker}/${jobId}`, { output: { answer: 42 } });
/** Its call has reached the queue. */
const heardOf = (id: string, worker: string) =>
  vi.waitFor(async () => expect((await job(id, "metrics"))["readyWorkers"]).toContain(worker));
const clockForward = (queue: DurableObjectStub<EndpointQueue>, ms: number) =>
  runInDurableObject(queue, (object) => {
    object.clock = () => Date.now() + ms;
  });
/** How many rows each of the queue's tables has. */
const storedRows = (queue: DurableObjectStub<EndpointQueue>) =>
  runInDurableObject(queue, (_, { storage: { sql } }) => {
    const tables = ["jobs", "payloads", "chunks", "outbox", "uploads", "executed"];
    return Object.fromEntries(
      tables.map((table) => [table, sql.exec<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`).one().n]),
    );
  });
const stateOf = async (id: string, jobId: string) => (await send("north", "GET", `/v2/${id}/status/${jobId}`)).json;

describe("an endpoint", () => {
  it("is created with the contract's defaults, and found again", async () => {
    const { id: templateId } = await template("north", { name: "named so", env: { A: "1" }, isServerless: true });
    const made = await ask("north", "POST", "/endpoints", { templateId });
    expect(made).toEqual({
      id: made.id,
      name: "named so",
      templateId,
      userId: "north",
      createdAt: made["createdAt"],
      version: 0,
      computeType: "GPU",
      gpuCount: 1,
      gpuTypeIds: ["NVIDIA GeForce RTX 4090"],
      vcpuCount: 2,
      env: { A: "1" },
      idleTimeout: 5,
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      type: "QB",
      executionTimeoutMs: 600_000,
      workersMin: 0,
      workersMax: 3,
      dataCenterIds: [...dataCenterIds],
      instanceIds: [],
      networkVolumeIds: [],
    });
    expect(await ask("north", "GET", `/endpoints/${made.id}`)).toEqual(made);
    expect(await list()).toEqual([made]);
  });

  it("keeps every field, and tolerates those it does not know", async () => {
    const [one, two] = [await volume("north"), await volume("north")];
    const body = {
      allowedCudaVersions: ["12.8"],
      cpuFlavorIds: ["cpu3c"],
      computeType: "CPU",
      dataCenterIds: ["EU-RO-1"],
      executionTimeoutMs: 5000,
      flashboot: true,
      gpuCount: 2,
      gpuTypeIds: ["NVIDIA L4", "NVIDIA A40"],
      idleTimeout: 60,
      minCudaVersion: "12.8",
      name: "whole",
      scalerType: "REQUEST_COUNT",
      scalerValue: 7,
      vcpuCount: 8,
      workersMax: 9,
      workersMin: 2,
      networkVolumeId: one.id,
      networkVolumeIds: [two.id],
    };
    const made = await endpoint("north", { ...body, tags: ["x"] });
    const { gpuTypeIds: _, ...kept } = body;
    expect(made).toMatchObject({ ...kept, networkVolumeIds: [one.id, two.id], instanceIds: ["cpu3c-8-16"] });
    expect(made).not.toHaveProperty("tags");
  });

  it.each([
    ["PATCH", ""],
    ["POST", "/update"],
  ])("is changed by %s%s: what is named, and nothing else", async (method, suffix) => {
    const before = await endpoint("north");
    const after = await ask("north", method, `/endpoints/${before.id}${suffix}`, { workersMax: 8, name: "new" });
    expect(after).toEqual({ ...before, workersMax: 8, name: "new", version: 1 });
    expect(await ask("north", "GET", `/endpoints/${before.id}`)).toEqual(after);
  });

  it("comes with its template and its workers where it is asked for", async () => {
    const { id, templateId } = await endpoint("north");
    await send("north", "GET", `/v2/${id}/ping/w1`);
    const whole = { template: { id: templateId }, workers: [{ id: "w1", endpointId: id, desiredStatus: "RUNNING" }] };
    const query = "?includeTemplate=true&includeWorkers=true";
    expect(await ask("north", "GET", `/endpoints/${id}${query}`)).toMatchObject(whole);
    expect(await list(query)).toMatchObject([whole]);
    const [plain] = await list();
    for (const name of Object.keys(whole)) expect(plain).not.toHaveProperty(name);
  });

  it("follows its template", async () => {
    const { id: templateId } = await template("north", { isServerless: true });
    const { id } = await endpoint("north", { templateId });
    await ask("north", "PATCH", `/templates/${templateId}`, { env: { NEW: "1" } });
    expect(await ask("north", "GET", `/endpoints/${id}`)).toMatchObject({ env: { NEW: "1" }, version: 1 });
  });

  it("holds on to its volumes", async () => {
    const [one, two] = [await volume("north"), await volume("north")];
    const { id } = await endpoint("north", { networkVolumeIds: [one.id, two.id] });
    await refused("north", "IN_USE", "DELETE", `/networkvolumes/${two.id}`);
    await ask("north", "PATCH", `/endpoints/${id}`, { networkVolumeIds: [one.id] });
    await ask("north", "DELETE", `/networkvolumes/${two.id}`);
    await refused("north", "IN_USE", "DELETE", `/networkvolumes/${one.id}`);
    await ask("north", "PATCH", `/endpoints/${id}`, { networkVolumeId: "" });
    expect(await ask("north", "GET", `/endpoints/${id}`)).not.toHaveProperty("networkVolumeId");
    await ask("north", "DELETE", `/networkvolumes/${one.id}`);
  });
});

describe("its job interface", () => {
  it("is live at once: an attached worker runs its jobs", async () => {
    const { id } = await endpoint("north");
    const jobId = await run(id);
    expect(await take(id, "w1")).toBe(jobId);
    expect((await done(id, "w1", jobId)).status).toBe(200);
    expect(await stateOf(id, jobId)).toMatchObject({ status: "COMPLETED", output: { answer: 42 }, workerId: "w1" });
  });

  it("times jobs out after the endpoint's own time, unless they bring theirs", async () => {
    const { id } = await endpoint("north", { executionTimeoutMs: 6000 });
    const own = await run(id);
    const { json } = await send("north", "POST", `/v2/${id}/run`, { input: {}, policy: { executionTimeout: 9000 } });
    const brought = (json as Json).id;
    const queue = env.ENDPOINT_QUEUE.getByName(`north/${id}`);
    const [first, second] = [await take(id, "w1"), await take(id, "w1")];
    expect([first, second]).toEqual([own, brought]);
    await clockForward(queue, 7000);
    expect(await stateOf(id, own)).toMatchObject({ status: "TIMED_OUT" });
    expect(await stateOf(id, brought)).toMatchObject({ status: "IN_PROGRESS" });
  });

  it("lets as many workers run as its settings say, and more when they say more", async () => {
    const { id } = await endpoint("north", { workersMax: 1 });
    const [one, two] = [await run(id), await run(id)];
    expect(await take(id, "w1")).toBe(one);
    const waiting = take(id, "w2");
    await heardOf(id, "w2");
    expect(await job(id, "health")).toMatchObject({ jobs: { inProgress: 1, inQueue: 1 } });
    await ask("north", "PATCH", `/endpoints/${id}`, { workersMax: 2 });
    expect(await waiting).toBe(two);
  });

  it("hands a job on to a waiting worker when another is done", async () => {
    const { id } = await endpoint("north", { workersMax: 1 });
    const [one, two] = [await run(id), await run(id)];
    await take(id, "w1");
    const waiting = take(id, "w2");
    await heardOf(id, "w2");
    expect(await job(id, "health")).toMatchObject({ jobs: { inProgress: 1, inQueue: 1 } });
    await done(id, "w1", one);
    expect(await waiting).toBe(two);
  });

  it("shows in health what its scaler wants", async () => {
    const { id } = await endpoint("north", {
      scalerType: "REQUEST_COUNT",
      scalerValue: 2,
      workersMin: 1,
      workersMax: 3,
    });
    const scaling = async () => (await job(id, "health"))["scaling"];
    const shown = { type: "REQUEST_COUNT", value: 2, workersMin: 1, workersMax: 3 };
    expect(await scaling()).toEqual({ ...shown, target: 1 });
    for (let count = 0; count < 3; count++) await run(id);
    expect(await scaling()).toEqual({ ...shown, target: 2 });
    for (let count = 0; count < 9; count++) await run(id);
    expect(await scaling()).toEqual({ ...shown, target: 3 });
    await ask("north", "PATCH", `/endpoints/${id}`, { scalerType: "QUEUE_DELAY", scalerValue: 4, workersMin: 0 });
    expect(await scaling()).toMatchObject({ type: "QUEUE_DELAY", value: 4, target: 1 });
  });

  it("lifts its limits by the requests that its scaler gives a worker", async () => {
    const { id } = await endpoint("north", { scalerType: "REQUEST_COUNT", scalerValue: 3 });
    await run(id);
    await take(id, "w1");
    const codes: unknown[] = [];
    for (let count = 0; count < 4; count++) codes.push((await job(id, "purge-queue", {}))["code"]);
    expect(codes).toEqual([undefined, undefined, undefined, "RATE_LIMITED"]);
  });

  it("belongs to its account alone", async () => {
    const { id } = await endpoint("north");
    expect((await send("north", "GET", `/v2/${id}/health`)).status).toBe(200);
    expect((await send("south", "GET", `/v2/${id}/health`)).json).toMatchObject({ code: "ENDPOINT_NOT_FOUND" });
    expect((await send("south", "POST", `/v2/${id}/run`, { input: {} })).status).toBe(404);
  });
});

describe("a deleted endpoint", () => {
  it("is unknown everywhere, its queue and history gone for good", async () => {
    const { id, templateId } = await endpoint("north");
    const [ended, running, waiting] = [await run(id), await run(id), await run(id)];
    await take(id, "w1");
    await done(id, "w1", ended);
    await take(id, "w1");
    await ask("north", "DELETE", `/endpoints/${id}`);
    await refused("north", "NOT_FOUND", "GET", `/endpoints/${id}`);
    await refused("north", "NOT_FOUND", "DELETE", `/endpoints/${id}`);
    expect(await list()).toEqual([]);
    const operations = ["health", "metrics", "requests", ...[ended, running, waiting].map((one) => `status/${one}`)];
    for (const operation of [...operations, "ping/w1", "job-take/w1", "job-stop/w1"]) {
      expect(await job(id, operation), operation).toMatchObject({ code: "ENDPOINT_NOT_FOUND" });
    }
    expect(await job(id, "run", { input: {} })).toMatchObject({ code: "ENDPOINT_NOT_FOUND" });
    const tables = await storedRows(env.ENDPOINT_QUEUE.getByName(`north/${id}`));
    expect(tables).toMatchObject({ jobs: 0, payloads: 0, chunks: 0, outbox: 0, uploads: 0, executed: 0 });
    await ask("north", "DELETE", `/templates/${templateId}`);
  });

  it("answers whoever waits there", async () => {
    const { id } = await endpoint("north");
    const held = send("north", "GET", `/v2/${id}/job-take/w1`);
    const submitted = await run(id);
    await held;
    const followed = send("north", "GET", `/v2/${id}/status-sync/${submitted}?wait=300000`);
    const polled = send("north", "GET", `/v2/${id}/job-take/w2`);
    await heardOf(id, "w2");
    await ask("north", "DELETE", `/endpoints/${id}`);
    expect([200, 404]).toContain((await followed).status);
    expect((await polled).json).toMatchObject({ code: "ENDPOINT_NOT_FOUND" });
  });

  it("leaves nothing that holds a template or a volume", async () => {
    const { id: networkVolumeId } = await volume("north");
    const { id } = await endpoint("north", { networkVolumeId });
    await pod("north");
    await ask("north", "DELETE", `/endpoints/${id}`);
    await ask("north", "DELETE", `/networkvolumes/${networkVolumeId}`);
    expect(ids(await list())).toEqual([]);
  });
});

describe("an endpoint's type", () => {
  const workerUrls = ["http://10.0.0.7:8000", "https://w.example.com"];

  it("is a queue's unless it says otherwise, and is answered by every operation", async () => {
    const queued = await endpoint("north");
    const balanced = await endpoint("north", {
      type: "LB",
      workerUrls: ["http://10.0.0.7:8000/", "HTTPS://w.example.com"],
    });
    expect(queued).toMatchObject({ type: "QB", scalerType: "QUEUE_DELAY" });
    expect(queued).not.toHaveProperty("workerUrls");
    expect(balanced).toMatchObject({ type: "LB", scalerType: "REQUEST_COUNT", workerUrls });
    expect(await ask("north", "GET", `/endpoints/${balanced.id}`)).toMatchObject({ type: "LB", workerUrls });
    const changed = await ask("north", "PATCH", `/endpoints/${balanced.id}`, { workerUrls: [], name: "other" });
    expect(changed).toMatchObject({ type: "LB", workerUrls: [], name: "other" });
    expect(await endpoint("north", { type: "LB" })).toMatchObject({ type: "LB", workerUrls: [] });
  });

  it("cannot be changed, and only an LB endpoint has workers' URLs, each an origin", async () => {
    const { id: templateId } = await template("north", { isServerless: true });
    const made = { templateId, type: "LB", workerUrls };
    const { id } = await ask("north", "POST", "/endpoints", made);
    for (const more of [{ type: "XX" }, { type: "QB" }, { scalerType: "QUEUE_DELAY" }, { workerUrls: "http://a" }]) {
      await refused("north", "INVALID_REQUEST", "POST", "/endpoints", { ...made, ...more });
    }
    const wrong = [
      "ftp://w.example.com",
      "w.example.com",
      "http://u:p@w.example.com",
      "http://w/path",
      "http://w/?q",
      "http://w/#x",
    ];
    for (const url of wrong) {
      expect(await refused("north", "INVALID_REQUEST", "POST", "/endpoints", { ...made, workerUrls: [url] })).toMatch(
        /^workerUrls\.0: /,
      );
      expect(await refused("north", "INVALID_REQUEST", "PATCH", `/endpoints/${id}`, { workerUrls: [url] })).toMatch(
        /^workerUrls\.0: /,
      );
    }
    expect(await refused("north", "INVALID_REQUEST", "PATCH", `/endpoints/${id}`, { type: "QB" })).toBe(
      "type: cannot be changed",
    );
    const many = Array.from({ length: 101 }, (_, n) => `http://w${n}`);
    await refused("north", "INVALID_REQUEST", "POST", "/endpoints", { ...made, workerUrls: many });
    const { id: queued } = await endpoint("north");
    expect(await refused("north", "INVALID_REQUEST", "PATCH", `/endpoints/${queued}`, { workerUrls })).toMatch(
      /^workerUrls: only/,
    );
    await ask("north", "PATCH", `/endpoints/${id}`, { type: "LB" });
  });
});
