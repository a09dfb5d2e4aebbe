// cancel: of a job that several requests share it takes one away; with the last one the upstream's job goes.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, model, painted, Studio, World } from "../images/studio.ts";

let world: World;
let land: () => void;
beforeEach(() => {
  world = new World();
  const gate = Promise.withResolvers<void>();
  world.gate = gate.promise;
  land = gate.resolve;
});
afterEach(emptyStorage);

type Job = { id: string; status: string; error?: string; output?: { image_url: string } };

const gone = () => Promise.reject(new Error("gone"));

describe("a cancel", () => {
  const submit = async (studio: Studio, token: string) =>
    (await (await studio.paint(token, { operation: "run" })).json<Job>()).id;
  const cancel = async (studio: Studio, token: string, id: string) =>
    (await studio.ask(`/v2/${model}/cancel/${id}`, token, "POST")).json<Job>();

  it("lets one go; the last one's is the upstream's", async () => {
    world.submitted = () => ({ status: "IN_QUEUE" });
    const studio = new Studio();
    const token = await studio.token("ada");
    const [lead, second, third] = [
      await submit(studio, token),
      await submit(studio, token),
      await submit(new Studio(), token),
    ];
    expect(await cancel(studio, token, second)).toEqual({ id: second, status: "CANCELLED" });
    expect(await cancel(studio, token, lead)).toEqual({ id: lead, status: "CANCELLED" });
    expect(world.count("/cancel")).toBe(0);
    expect(await cancel(new Studio(), token, third)).toMatchObject({ id: third, status: "CANCELLED" });
    expect(world.count("/cancel")).toBe(1);
  });

  it("is the upstream's where the other request was refused", async () => {
    world.submitted = () => ({ status: "IN_QUEUE" });
    const studio = new Studio();
    const token = await studio.token("ada");
    const lead = await submit(studio, token);
    const headers = { "Idempotency-Key": "no spaces" };
    await expectProblem(await studio.paint(token, { operation: "run", headers }), "INVALID_REQUEST");
    expect(await cancel(studio, token, lead)).toEqual({ id: lead, status: "CANCELLED" });
    expect(world.count("/cancel")).toBe(1);
  });

  it("is the upstream's where the other request gave up waiting for the first", async () => {
    world.submitted = () => ({ status: "IN_QUEUE" });
    const studio = new Studio();
    const token = await studio.token("ada");
    const lead = await submit(studio, token);
    const awaitRef = () => {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
      return gone();
    };
    const getByName = (name: string) =>
      new Proxy(env.GENERATION.getByName(name), {
        get: (object, method) => (method === "awaitRef" ? awaitRef : Reflect.get(object, method)),
      });
    const impatient = new Studio({ GENERATION: { getByName } });
    await expectProblem(await impatient.paint(token, { operation: "run" }), "UPSTREAM_TIMEOUT");
    vi.useRealTimers();
    expect(await cancel(studio, token, lead)).toEqual({ id: lead, status: "CANCELLED" });
    expect(world.count("/cancel")).toBe(1);
  });

  it.each([
    ["a cancel", (id: string) => `cancel/${id}`],
    ["a purge", () => "purge-queue"],
  ])("of another user's shared job by %s takes nothing from the others", async (_, path) => {
    world.submitted = () => ({ status: "IN_QUEUE" });
    const shared = new Studio({ REUSE_SCOPE: "shared" });
    const [ada, bob] = [await shared.token("ada"), await shared.token("bob")];
    const [lead, rider] = [await submit(shared, ada), await submit(shared, bob)];
    await shared.ask(`/v2/${model}/${path(rider)}`, bob, "POST");
    expect(world.count("/cancel")).toBe(0);
    expect(await charged("bob")).toEqual({ microUsd: 0, jobs: 1, open: 0 });
    await shared.ask(`/v2/${model}/${path(lead)}`, ada, "POST");
    expect(world.count("/cancel")).toBe(1);
  });

  it.each([
    ["a small answer", {}],
    ["one above 256 KB", { film: "x".repeat(300_000) }],
  ])("stays cancelled for who got off in %s, and the others still get their picture", async (_, more) => {
    const output = { image_url: "https://cdn.example.net/a.png", cost: 0.0025, ...more };
    world.submitted = () => painted(output.image_url, { output, delayTime: 2, executionTime: 3 });
    const studio = new Studio();
    const token = await studio.token("ada");
    const [lead, second] = [await submit(studio, token), await submit(studio, token)];
    await cancel(studio, token, second);
    const status = async (id: string, at: Studio) => (await at.ask(`/v2/${model}/status/${id}`, token)).json<Job>();
    for (const at of [studio, new Studio()]) {
      expect(await status(second, at)).toEqual({ id: second, status: "CANCELLED", delayTime: 2, executionTime: 3 });
    }
    const { image_url } = (await status(lead, new Studio())).output ?? {};
    expect(image_url).toMatch(/^https:\/\/sluice\.test\/images\//);
    expect(await charged("ada")).toEqual({ microUsd: 2500, jobs: 2, open: 0 });
    // Nobody is answered with the part of it that the cancelled one's answer was seen as.
    land();
    expect((await (await studio.paint(token)).json<Job>()).output).toMatchObject(more);
  });
});
