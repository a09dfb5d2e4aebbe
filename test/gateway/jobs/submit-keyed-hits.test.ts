// A key is looked at before the cache: an answer that could be had for nothing is no answer to another call.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, meterOf, Studio, World } from "../media/studio.ts";
import { MeterTap } from "./meter-tap.ts";

afterEach(emptyStorage);
let world: World;
beforeEach(() => {
  world = new World();
});

const headers = { "Idempotency-Key": "key-1" };
const other = { prompt: "a tower" };
const idOf = async (response: Response) => (await response.json<{ id: string }>()).id;
const cacheOf = (response: Response) => response.headers.get("X-Cache");

describe("attack M9: a key whose call is answered from the cache", () => {
  it("stands for it: another body is refused, in the cache or not, and starts nothing", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    await studio.paint(token, { input: other });
    expect(cacheOf(await studio.paint(token, { headers }))).toBe("HIT");
    for (const input of [other, { prompt: "never asked" }]) {
      await expectProblem(await studio.paint(token, { headers, input }), "IDEMPOTENCY_MISMATCH");
      await expectProblem(await studio.paint(token, { headers, input, operation: "run" }), "IDEMPOTENCY_MISMATCH");
    }
    expect([world.count("/run"), (await charged("ada")).jobs]).toEqual([2, 2]);
  });

  it("answers its first admission, also when the cache has forgotten", async () => {
    for (const operation of ["run", "runsync"] as const) {
      const studio = new Studio();
      const token = await studio.token(`ada-${operation}`);
      await studio.paint(token);
      const first = await idOf(await studio.paint(token, { headers, operation }));
      expect(await idOf(await studio.paint(token, { headers, operation }))).toBe(first);
      expect(await idOf(await studio.paint(token, { operation }))).not.toBe(first);
      const elsewhere = new Studio({ IMAGE_REUSE: "never" });
      expect(await idOf(await elsewhere.paint(token, { headers, operation }))).toBe(first);
      expect((await charged(`ada-${operation}`)).jobs).toBe(1);
      const status = await elsewhere.ask(`/v2/black-forest-labs-flux-1-schnell/status/${first}`, token);
      expect(await status.json()).toMatchObject({ id: first, status: "COMPLETED" });
    }
  });

  it("answers the job that it made, and not what the cache has since", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    for (const operation of ["run", "runsync"] as const) {
      const keyed = { headers: { "Idempotency-Key": operation }, operation, input: { prompt: operation } };
      const made = await studio.paint(token, keyed);
      expect(cacheOf(made)).toBe("MISS");
      const first = await idOf(made);
      await studio.ask(`/v2/black-forest-labs-flux-1-schnell/status/${first}`, token);
      const again = await studio.paint(token, keyed);
      expect([cacheOf(again), await idOf(again)]).toEqual([null, first]);
      await expectProblem(await studio.paint(token, { ...keyed, input: other }), "IDEMPOTENCY_MISMATCH");
    }
  });

  it("is counted as a request once, and never as money", async () => {
    const studio = new Studio();
    const token = await studio.token("ada", "free");
    await studio.paint(token);
    for (let time = 0; time < 3; time++) await studio.paint(token, { headers });
    const claims = { plan: "free", planFrom: "token", plans: "{}", token: undefined } as const;
    const { limits } = await meterOf("ada").usage(claims);
    expect(limits.find(({ name }) => name === "requests-minute")?.used).toBe(2);
    expect((await charged("ada")).microUsd).toBe(2500);
  });

  it("is each visitor's own, and one that is shared keeps its own link", async () => {
    const shared = new Studio({ REUSE_SCOPE: "shared" });
    await shared.paint(await shared.token("ada"), { headers });
    const bob = await shared.token("bob");
    const first = await shared.paint(bob, { headers });
    expect(cacheOf(first)).toBe("HIT");
    expect(await idOf(await shared.paint(bob, { headers }))).toBe(await idOf(first));
    await expectProblem(await shared.paint(bob, { headers, input: other }), "IDEMPOTENCY_MISMATCH");
  });

  it("that cannot be looked at is answered nothing", async () => {
    const tap = new MeterTap();
    const studio = new Studio({ USER_METER: tap.namespace });
    const token = await studio.token("ada");
    await studio.paint(token);
    tap.lose = ({ name }) => (name === "countHit" ? "question" : undefined);
    await expectProblem(await studio.paint(token, { headers }), "METER_UNAVAILABLE");
    expect(cacheOf(await studio.paint(token))).toBe("HIT");
  });

  it("whose first answer was lost on its way is the same hit again", async () => {
    const tap = new MeterTap();
    const studio = new Studio({ USER_METER: tap.namespace });
    const token = await studio.token("ada");
    await studio.paint(token);
    let losses = 1;
    tap.lose = ({ name }) => (name === "countHit" && losses-- > 0 ? "answer" : undefined);
    const first = await studio.paint(token, { headers });
    expect([cacheOf(first), tap.names().filter((name) => name === "countHit").length]).toEqual(["HIT", 2]);
    expect(await idOf(await studio.paint(token, { headers }))).toBe(await idOf(first));
  });

  it("refuses a token that was revoked", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    await meterOf("ada").revoke("user:ada", Date.now() + 1000);
    await expectProblem(await studio.paint(token, { headers }), "TOKEN_REVOKED");
  });
});
