// How old an isolate's knowledge of revocations may be, whatever happens to CONTROL.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ControlReader, type ReadChanges } from "../../../src/gateway/control/control-reader.ts";
import type { ControlChanges } from "../../../src/gateway/control/control-view.ts";

const changes = (version: number, change: Partial<ControlChanges> = {}): ControlChanges => ({
  restarted: false,
  version,
  plans: [],
  models: [],
  users: [],
  tokens: [],
  ceilings: [],
  ...change,
});
const revoked = (owner: string, value = 50) => ({ users: [{ name: owner, value }] });
const ada = { owner: "user:ada", issuedAt: 10 };

function reading(read: ReadChanges) {
  const asked = vi.fn(read);
  const reader = new ControlReader(asked);
  const deferred: Promise<unknown>[] = [];
  const at = (now: number) => reader.current(now, (work) => deferred.push(work));
  return { reader, asked, at, settled: () => Promise.all(deferred.splice(0)) };
}
const fails = () => Promise.reject(new Error("overloaded"));

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("what an isolate knows of CONTROL", () => {
  it("is read once, then given without a promise for 10 s", async () => {
    const { asked, at } = reading(async () => changes(1));
    await at(0);
    for (const now of [1, 5_000, 9_999]) expect(at(now)).not.toBeInstanceOf(Promise);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it("is read anew beside a request between 10 and 20 s, by one request of many", async () => {
    const answers = [changes(1), changes(2, revoked("user:ada"))];
    const { asked, at, settled } = reading(async () => answers.shift());
    await at(0);
    const view = await at(10_000);
    expect(at(10_001)).not.toBeInstanceOf(Promise);
    expect(asked).toHaveBeenCalledTimes(2);
    expect(asked).toHaveBeenLastCalledWith(1);
    await settled();
    expect(view.isRevoked(ada)).toBe(true);
    expect(at(29_999)).not.toBeInstanceOf(Promise);
  });

  it("is never older than 20 s: then a request waits", async () => {
    const answers = [changes(1), changes(2, revoked("user:ada"))];
    const { at } = reading(async () => answers.shift());
    expect((await at(0)).isRevoked(ada)).toBe(false);
    const waited = at(20_000);
    expect(waited).toBeInstanceOf(Promise);
    expect((await waited).isRevoked(ada)).toBe(true);
  });

  it("is as old as the question, not as the answer", async () => {
    const slow = Promise.withResolvers<ControlChanges>();
    const { at } = reading(() => slow.promise);
    const first = at(0);
    slow.resolve(changes(1));
    await first;
    expect(at(20_000)).toBeInstanceOf(Promise);
  });

  it("counts for a minute in all while CONTROL fails, and nobody is let in after that", async () => {
    let works = true;
    const { asked, at } = reading(() => (works ? Promise.resolve(changes(1, revoked("user:ada"))) : fails()));
    await at(0);
    works = false;
    expect((await at(20_000)).isRevoked(ada)).toBe(true);
    await at(20_500);
    expect(asked).toHaveBeenCalledTimes(2);
    await at(59_999);
    await expect(at(60_999)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE", status: 503 });
    works = true;
    await expect(at(62_498)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
    expect(await at(62_499)).toBeDefined();
  });

  it("is nothing to go by where it was never read", async () => {
    const { asked, at } = reading(fails);
    await expect(at(0)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
    await expect(at(2_499)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it("is not waited for without end", async () => {
    vi.useFakeTimers();
    const { at } = reading(() => new Promise(() => undefined));
    const refused = expect(at(0)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
    await vi.advanceTimersByTimeAsync(2_000);
    await refused;
  });

  it("is read by the next request where the operator changed something here", async () => {
    const { reader, asked, at } = reading(async () => changes(1));
    await at(0);
    reader.outdate();
    await at(1);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it("takes answers in any order", async () => {
    const [early, late] = [Promise.withResolvers<ControlChanges>(), Promise.withResolvers<ControlChanges>()];
    const answers = [early.promise, late.promise];
    const { at } = reading(() => answers.shift() ?? fails());
    const both = [at(0), at(1)];
    late.resolve(changes(2, revoked("user:ada", 50)));
    await both[1];
    early.resolve(changes(1, revoked("user:ada", 5)));
    await both[0];
    expect((await at(2)).isRevoked(ada)).toBe(true);
  });

  it.each([
    ["before its user was revoked", 9_999, true],
    ["by a clock that is five seconds ahead", 15_000, true],
    ["later", 15_001, false],
  ])("fault L5: refuses a token that was issued %s", async (_when, issuedAt, isRevoked) => {
    const { at } = reading(async () => changes(1, revoked("user:ada", 10_000)));
    expect((await at(0)).isRevoked({ ...ada, issuedAt })).toBe(isRevoked);
  });

  it("starts over where CONTROL's storage did", async () => {
    const answers = [changes(7, revoked("user:ada")), changes(1, { restarted: true, ...revoked("user:bob") })];
    const { at } = reading(async () => answers.shift());
    await at(0);
    const view = await at(20_000);
    expect([view.isRevoked(ada), view.isRevoked({ ...ada, owner: "user:bob" }), view.version]).toEqual([
      false,
      true,
      1,
    ]);
  });
});
