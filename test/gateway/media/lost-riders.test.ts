// A job's own object knows who shares the job. Where it could not be told, nobody shares it: a cancel would end it for all.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { type Detours, detoured, gatedWorld, model, Studio, type World } from "./studio.ts";

let world: World;
let token: string;
beforeEach(async () => {
  ({ world } = gatedWorld());
  world.submitted = () => ({ status: "IN_PROGRESS" });
  token = await new Studio().token("ada");
});
afterEach(emptyStorage);

const lost = () => Promise.reject(new Error("Network connection lost."));

async function run(detours: Detours = {}) {
  const studio = new Studio(detoured("JOB_MEDIA", detours));
  const response = await studio.paint(token, { operation: "run" });
  const { id } = await response.json<{ id: string }>();
  return { id, job: id.split(".")[0], cache: response.headers.get("X-Cache") };
}

const cancel = (id: string) => new Studio().ask(`/v2/${model}/cancel/${id}`, token, "POST");

async function statusOf(id: string): Promise<string> {
  const response = await new Studio().ask(`/v2/${model}/status/${id}`, token);
  return (await response.json<{ status: string }>()).status;
}

describe("fault: a job is cancelled, and one of those who share it stayed", () => {
  /** Of the calls that tell who rides, the first is lost. */
  const firstIsLost = (): Detours => {
    let calls = 0;
    return { expect: (call) => (++calls === 1 ? lost() : call()) };
  };

  it("a lost word on the leader is said again: its cancel leaves the job to the others", async () => {
    const leader = await run(firstIsLost());
    const rider = await run();
    expect([leader.cache, rider.cache]).toEqual(["MISS", "JOINED"]);
    await cancel(leader.id);
    expect(world.count("/cancel")).toBe(0);
    expect(await statusOf(rider.id)).toBe("IN_PROGRESS");
  });

  it("so is one on who joins", async () => {
    const leader = await run();
    const rider = await run(firstIsLost());
    expect([leader.cache, rider.cache]).toEqual(["MISS", "JOINED"]);
    await cancel(rider.id);
    expect(world.count("/cancel")).toBe(0);
    expect(await statusOf(leader.id)).toBe("IN_PROGRESS");
  });

  it("nobody joins a leader whose object cannot be told", async () => {
    const leader = await run({ expect: lost });
    const next = await run();
    expect([leader.cache, next.cache]).toEqual(["MISS", "MISS"]);
    await cancel(leader.id);
    expect([await statusOf(leader.id), await statusOf(next.id)]).toEqual(["CANCELLED", "IN_PROGRESS"]);
  });

  it("nor does anybody join whose own object cannot be told", async () => {
    const leader = await run();
    const alone = await run({ expect: lost });
    expect([leader.job, alone.job]).toEqual(["job-1", "job-2"]);
    await cancel(alone.id);
    expect([await statusOf(leader.id), await statusOf(alone.id)]).toEqual(["IN_PROGRESS", "CANCELLED"]);
  });
});
