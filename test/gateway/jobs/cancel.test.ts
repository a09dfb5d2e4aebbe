// cancel: of a job that several requests share it takes one away; with the last one the upstream's job goes.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SharedRequest } from "../../../src/gateway/media/shared-request.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, gatedWorld, model, painted, Studio, type World } from "../media/studio.ts";

let world: World;
let land: () => void;
beforeEach(() => {
  ({ world, land } = gatedWorld());
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
    const later = Date.now() + 61_000;
    const awaitRef = () => {
      vi.useFakeTimers({ toFake: ["Date"], now: later });
      return gone();
    };
    const getByName = (name: string) =>
      new Proxy(env.SHARED_REQUEST.getByName(name), {
        get: (object, method) => (method === "awaitRef" ? awaitRef : Reflect.get(object, method)),
      });
    const impatient = new Studio({ SHARED_REQUEST: { getByName } });
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
    ["a small answer", {}, /^https:\/\/sluice\.test\/images\//],
    ["one above 256 KB", { film: "x".repeat(300_000) }, /^https:\/\/cdn\.example\.net\//],
  ])("stays cancelled for who got off in %s, and the others still get their picture", async (_, more, shown) => {
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
    expect(image_url).toMatch(shown);
    expect(await charged("ada")).toEqual({ microUsd: 2500, jobs: 2, open: 0 });
    // Nobody is answered with the part of it that the cancelled one's answer was seen as.
    land();
    expect((await (await studio.paint(token)).json<Job>()).output).toMatchObject(more);
  });

  describe("of a job that is another's too", () => {
    let shared: Studio;
    let [ada, bob] = ["", ""];
    let [lead, rider] = ["", ""];
    /** Those of the request that both asked for. */
    let names: string[];
    beforeEach(async () => {
      world.submitted = () => ({ status: "IN_QUEUE" });
      names = [];
      const getByName = (name: string) => {
        names.push(name);
        return env.SHARED_REQUEST.getByName(name);
      };
      shared = new Studio({ REUSE_SCOPE: "shared", SHARED_REQUEST: { getByName } });
      [ada, bob] = [await shared.token("ada"), await shared.token("bob")];
      [lead, rider] = [await submit(shared, ada), await submit(shared, bob)];
    });
    const request = () => env.SHARED_REQUEST.getByName(names[0] ?? "");

    it("ends it for nobody else, however often it is sent and from wherever", async () => {
      for (const at of [shared, new Studio({ REUSE_SCOPE: "shared" }), shared]) {
        expect(await cancel(at, bob, rider)).toEqual({ id: rider, status: "CANCELLED" });
        await at.ask(`/v2/${model}/purge-queue`, bob, "POST");
      }
      expect(world.count("/cancel")).toBe(0);
    });

    it("ends it for nobody else when nobody boards it any more, and the next one began", async () => {
      const later = Date.now() + 20 * 60_000;
      await runInDurableObject(request(), (object: SharedRequest) => {
        object.clock = () => later;
      });
      await submit(shared, ada);
      expect(world.count("POST /run")).toBe(2);
      await cancel(shared, bob, rider);
      expect(world.count("/cancel")).toBe(0);
      await cancel(shared, ada, lead);
      expect(world.count("/cancel")).toBe(1);
    });

    it("ends it for nobody else where the first one's way off was told by halves", async () => {
      const getByName = (name: string) =>
        new Proxy(env.JOB_MEDIA.getByName(name), {
          get: (object, method) => (method === "detach" ? gone : Reflect.get(object, method)),
        });
      const halved = new Studio({ REUSE_SCOPE: "shared", JOB_MEDIA: { getByName } });
      await expectProblem(await halved.ask(`/v2/${model}/cancel/${lead}`, ada, "POST"), "METER_UNAVAILABLE");
      expect(await cancel(shared, ada, lead)).toEqual({ id: lead, status: "CANCELLED" });
      expect(world.count("/cancel")).toBe(0);
    });

    it("ends it for nobody else where nobody knows any more who shares it", async () => {
      await evictDurableObject(request());
      await runInDurableObject(request(), (_, { storage }) => storage.deleteAll());
      expect(await cancel(shared, bob, rider)).toEqual({ id: rider, status: "IN_QUEUE" });
      await shared.ask(`/v2/${model}/purge-queue`, bob, "POST");
      expect(world.count("/cancel")).toBe(0);
    });

    it("is the answer to who got off, also where nobody knows any more who shares it", async () => {
      await cancel(shared, bob, rider);
      await evictDurableObject(request());
      await runInDurableObject(request(), (_, { storage }) => storage.deleteAll());
      expect(await cancel(new Studio({ REUSE_SCOPE: "shared" }), bob, rider)).toEqual({
        id: rider,
        status: "CANCELLED",
      });
      expect(world.count("/cancel")).toBe(0);
    });

    it("ends it for nobody else where nobody can be asked who shares it", async () => {
      const lost = { getByName: () => ({ leave: gone }) };
      const blind = new Studio({ REUSE_SCOPE: "shared", SHARED_REQUEST: lost });
      for (const [token, id] of [
        [bob, rider],
        [ada, lead],
      ]) {
        await expectProblem(await blind.ask(`/v2/${model}/cancel/${id}`, token, "POST"), "METER_UNAVAILABLE");
        await blind.ask(`/v2/${model}/purge-queue`, token, "POST");
      }
      expect(world.count("/cancel")).toBe(0);
    });
  });
});
