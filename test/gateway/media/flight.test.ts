// Identical requests in flight are one job of the model's: one call, one charge, and everybody's answer.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SharedRequest } from "../../../src/gateway/media/shared-request.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, gatedWorld, meterOf, model, Studio, type World } from "./studio.ts";

let world: World;
let land: () => void;
beforeEach(() => {
  ({ world, land } = gatedWorld());
});
afterEach(emptyStorage);

type Job = { id: string; status: string; error?: string; output?: { image_url: string } };

describe("a hundred identical requests", () => {
  it("make one call and one charge, though the first client leaves in the middle", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    const first = new AbortController();
    const leaving = studio.paint(token, { signal: first.signal }).then(
      (response) => response.status,
      () => "left",
    );
    await vi.waitFor(() => expect(world.count("/status-sync")).toBe(1));
    const isolates = [studio, new Studio(), new Studio()];
    const others = Array.from({ length: 99 }, (_, at) => (isolates[at % isolates.length] ?? studio).paint(token));
    await vi.waitFor(() => expect(world.count("/status-sync")).toBe(100), { timeout: 10_000 });
    first.abort();
    land();
    const responses = await Promise.all(others);
    await leaving;

    expect(world.count("POST /run")).toBe(1);
    expect(new Set(responses.map(({ headers }) => headers.get("X-Cache")))).toEqual(new Set(["JOINED"]));
    expect(new Set(responses.map(({ headers }) => headers.get("X-Cost")))).toEqual(new Set(["0"]));
    const jobs = await Promise.all(responses.map((response) => response.json<Job>()));
    expect(new Set(jobs.map(({ status }) => status))).toEqual(new Set(["COMPLETED"]));
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(99);
    expect(new Set(jobs.map(({ output }) => output?.image_url)).size).toBe(1);
    const { microUsd, jobs: admitted } = await charged("ada");
    expect({ microUsd, admitted }).toEqual({ microUsd: 2500, admitted: 100 });
  }, 20_000);

  it("lead nobody astray when they all come at once", async () => {
    land();
    const studio = new Studio();
    const token = await studio.token("ada");
    const responses = await Promise.all(Array.from({ length: 100 }, () => studio.paint(token)));
    expect(responses.map(({ status }) => status)).toEqual(new Array(100).fill(200));
    expect(world.count("POST /run")).toBe(1);
    expect((await charged("ada")).microUsd).toBe(2500);
  }, 20_000);
});

describe("riders", () => {
  it("pay for a retry like anybody else", async () => {
    land();
    world.submitted = () => ({ status: "FAILED", error: "out of paint" });
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token, { operation: "run" });
    const { id } = await (await studio.paint(token, { operation: "run" })).json<Job>();
    await studio.ask(`/v2/${model}/status/${id}`, token);
    const retried = await studio.ask(`/v2/${model}/retry/${id}`, token, "POST");
    expect(retried.status).toBe(200);
    const { jobs } = await meterOf("ada").jobs("user:ada", undefined, 0, 10);
    expect(jobs[0]?.reservedMicroUsd).toBeGreaterThan(0);
  });

  it("take no place and reserve nothing", async () => {
    const studio = new Studio();
    const token = await studio.token("ada", "anonymous");
    const lead = studio.paint(token, { operation: "run" });
    expect((await lead).headers.get("X-Cache")).toBe("MISS");
    const joined = await studio.paint(token, { operation: "run" });
    expect(joined.headers.get("X-Cache")).toBe("JOINED");
    await expectProblem(await studio.paint(token, { input: { seed: 8 } }), "TOO_MANY_JOBS");
  });

  it("all see the failure, and nobody pays", async () => {
    world.submitted = () => ({ status: "FAILED", error: "out of paint" });
    const studio = new Studio();
    const token = await studio.token("ada");
    const asked = [studio.paint(token), studio.paint(token), studio.paint(token)];
    await vi.waitFor(() => expect(world.count("/status-sync")).toBe(3));
    land();
    const jobs = await Promise.all(asked.map(async (response) => (await response).json<Job>()));
    expect(jobs.map(({ status, error }) => `${status}: ${error}`)).toEqual(new Array(3).fill("FAILED: out of paint"));
    expect(await charged("ada")).toEqual({ microUsd: 0, jobs: 3, open: 0 });
    expect(world.count("POST /run")).toBe(1);
    expect((await studio.paint(token)).headers.get("X-Cache")).toBe("MISS");
  });

  it("all hear that the model service refused, and the next one tries anew", async () => {
    world.refuse = Response.json({ error: "no such size" }, { status: 400 });
    const studio = new Studio();
    const token = await studio.token("ada");
    await expectProblem(await studio.paint(token), "UPSTREAM_INVALID");
    expect(await charged("ada")).toMatchObject({ microUsd: 0, jobs: 0 });
    world.refuse = undefined;
    land();
    expect((await studio.paint(token)).status).toBe(200);
  });

  it("board no flight whose job was over before its leader could say its id", async () => {
    world.submitted = () => ({ status: "FAILED", error: "out of paint" });
    const told = Promise.withResolvers<void>();
    const { getByName } = env.SHARED_REQUEST;
    const late = (name: string) => {
      const object = getByName.call(env.SHARED_REQUEST, name);
      const takeOff: typeof object.takeOff = async (...said) => told.promise.then(() => object.takeOff(...said));
      return new Proxy(object, {
        get: (_, method) => (method === "takeOff" ? takeOff : Reflect.get(object, method)),
      });
    };
    const studio = new Studio({ SHARED_REQUEST: { getByName: late } });
    const token = await studio.token("ada");
    const land = vi.spyOn(SharedRequest.prototype, "land");
    const lead = studio.paint(token, { operation: "run" });
    // A notice of a job that the meter does not know by its id yet is looked into by the alarm, later.
    const known = async () => (await meterOf("ada").jobs("user:ada", undefined, 0, 1)).jobs[0]?.upstreamId;
    await vi.waitFor(async () => expect(await known()).toBe("job-1"), { timeout: 10_000 });
    const body = { id: "job-1", ...world.submitted(1) };
    const notice = await studio.ask(new URL(world.webhook).pathname, undefined, "POST", { body });
    expect(notice.status).toBe(200);
    await vi.waitFor(() => expect(land).toHaveReturned());
    told.resolve();
    expect((await lead).status).toBe(200);
    // The job's object tells the flight of the end beside its answer.
    const boards = async () => (await studio.paint(token, { operation: "run" })).headers.get("X-Cache");
    await vi.waitFor(async () => expect(await boards()).toBe("MISS"));
  });

  it("fault L7: are known as long as their job may run, so that a cancel after days lets one go and no more", async () => {
    world.submitted = () => ({ status: "IN_PROGRESS" });
    const woken = new Map<"JOB_MEDIA" | "SHARED_REQUEST", string>();
    const noting = (binding: "JOB_MEDIA" | "SHARED_REQUEST") => ({
      getByName: (name: string) => {
        woken.set(binding, name);
        return env[binding].getByName(name);
      },
    });
    const studio = new Studio({ JOB_MEDIA: noting("JOB_MEDIA"), SHARED_REQUEST: noting("SHARED_REQUEST") });
    const token = await studio.token("ada");
    const ids = [];
    for (const _ of [1, 2]) ids.push((await (await studio.paint(token, { operation: "run" })).json<Job>()).id);
    // A request with a policy flies alone: these may run for a day.
    const longest = Date.now() + 24 * 60 * 60_000;
    expect([...woken.keys()].sort()).toEqual(["JOB_MEDIA", "SHARED_REQUEST"]);
    for (const [binding, name] of woken) {
      const object = env[binding].getByName(name) as DurableObjectStub;
      const forgetsAt = await runInDurableObject(object, (_object, { storage: { sql } }) =>
        Number(sql.exec("SELECT MIN(until) AS at FROM kept").one()["at"]),
      );
      expect(forgetsAt).toBeGreaterThanOrEqual(longest);
    }
    const [leader = "", rider = ""] = ids;
    const cancel = async (id: string) => (await studio.ask(`/v2/${model}/cancel/${id}`, token, "POST")).json<Job>();
    expect([await cancel(rider), world.count("/cancel")]).toMatchObject([{ id: rider, status: "CANCELLED" }, 0]);
    expect([await cancel(leader), world.count("/cancel")]).toMatchObject([{ id: leader, status: "CANCELLED" }, 1]);
  });

  it("share no flight with another user", async () => {
    const studio = new Studio();
    const [ada, bob] = [await studio.token("ada"), await studio.token("bob")];
    expect((await studio.paint(ada, { operation: "run" })).headers.get("X-Cache")).toBe("MISS");
    expect((await studio.paint(bob, { operation: "run" })).headers.get("X-Cache")).toBe("MISS");
    expect((await studio.paint(ada, { operation: "run" })).headers.get("X-Cache")).toBe("JOINED");
    expect(world.count("POST /run")).toBe(2);
  });

  it("do without a flight where its object cannot be reached, and hand out a link that lives", async () => {
    land();
    const broken = { getByName: () => ({ board: gone, conclude: gone, find: gone }) };
    const studio = new Studio({ JOB_MEDIA: broken, SHARED_REQUEST: broken });
    const response = await studio.paint(await studio.token("ada"));
    expect(response.headers.get("X-Cache")).toBe("MISS");
    expect((await response.json<Job>()).output?.image_url).toBe("https://cdn.example.net/a.png");
  });
});
const gone = () => Promise.reject(new Error("gone"));
