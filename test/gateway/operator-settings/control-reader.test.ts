// How old an isolate's knowledge of revocations may be, whatever happens to CONTROL.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  ControlReader,
  type ReadChanges,
  type ReadCopy,
} from "../../../src/gateway/operator-settings/control-reader.ts";
import type { ControlChanges } from "../../../src/gateway/operator-settings/control-view.ts";

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

function reading(read: ReadChanges, copy?: ReadCopy) {
  const asked = vi.fn(read);
  const reader = new ControlReader(asked, copy);
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
    reader.invalidate();
    await at(1);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it("fault: changes that cannot be read use up nothing of its minute, however many they are", async () => {
    let works = true;
    const { reader, at } = reading(() => (works ? Promise.resolve(changes(1, revoked("user:ada"))) : fails()));
    await at(0);
    works = false;
    for (let time = 0; time < 5; time++) reader.invalidate();
    expect((await at(1)).isRevoked(ada)).toBe(true);
    expect((await at(59_999)).isRevoked(ada)).toBe(true);
    await expect(at(63_000)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
  });

  it("is not taken for changed by an answer that was asked for before the change", async () => {
    const slow = Promise.withResolvers<ControlChanges>();
    const answers = [Promise.resolve(changes(1)), slow.promise, Promise.resolve(changes(2, revoked("user:ada")))];
    const { reader, at, settled } = reading(() => answers.shift() ?? fails());
    await at(0);
    await at(10_000);
    reader.invalidate();
    slow.resolve(changes(1));
    await settled();
    expect((await at(10_001)).isRevoked(ada)).toBe(true);
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

describe("an isolate that goes by KV's copy", () => {
  const never = () => new Promise<undefined>(() => undefined);
  const copied =
    (version: number, change: Partial<ControlChanges> = {}) =>
    async () =>
      changes(version, change);

  it("does not wait for CONTROL, which it asks once beside its requests", async () => {
    const { asked, at } = reading(never, copied(3, revoked("user:ada")));
    expect((await at(0)).isRevoked(ada)).toBe(true);
    for (const now of [1, 1_999]) expect(at(now)).not.toBeInstanceOf(Promise);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(asked).toHaveBeenCalledWith(0);
  });

  it("asks CONTROL for what came after the copy, and knows it from then on", async () => {
    const slow = Promise.withResolvers<ControlChanges>();
    const { at, settled } = reading(() => slow.promise, copied(3));
    expect((await at(0)).isRevoked(ada)).toBe(false);
    slow.resolve(changes(4, revoked("user:ada")));
    await settled();
    const view = at(1);
    expect(view).not.toBeInstanceOf(Promise);
    expect((await view).isRevoked(ada)).toBe(true);
  });

  it("does so again where it was idle, and an older copy takes back nothing of what it read", async () => {
    const answers = [Promise.resolve(changes(5, revoked("user:ada"))), never()];
    const { at } = reading(() => answers.shift() ?? fails(), copied(4));
    await at(0);
    const view = await at(60_000);
    expect([view.version, view.isRevoked(ada)]).toEqual([5, true]);
  });

  it("takes a copy that comes after CONTROL's answer for nothing", async () => {
    const late = Promise.withResolvers<ControlChanges>();
    const { at } = reading(
      async () => changes(1),
      () => late.promise,
    );
    const view = await at(0);
    late.resolve(changes(9, revoked("user:ada")));
    await late.promise;
    await Promise.resolve();
    expect([view.version, view.isRevoked(ada)]).toEqual([1, false]);
  });

  it.each<[string, ReadCopy]>([
    ["there is no copy", async () => undefined],
    ["KV hangs", never],
    ["KV fails", fails],
  ])("waits for CONTROL where %s", async (_why, copy) => {
    const { at } = reading(async () => changes(1, revoked("user:ada")), copy);
    expect((await at(0)).isRevoked(ada)).toBe(true);
  });

  it("lets nobody in where CONTROL fails and there is no copy", async () => {
    const { at } = reading(fails, async () => undefined);
    await expect(at(0)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE", status: 503 });
  });

  it("lets nobody in for longer than 20 s without CONTROL, and then whoever CONTROL lets in", async () => {
    let works = false;
    const { at, settled } = reading(() => (works ? Promise.resolve(changes(4)) : fails()), copied(3));
    await at(0);
    await settled();
    expect(at(19_999)).not.toBeInstanceOf(Promise);
    await settled();
    await expect(at(20_000)).rejects.toMatchObject({ code: "CONTROL_UNAVAILABLE" });
    works = true;
    expect((await at(22_500)).version).toBe(4);
  });

  it("asks CONTROL alone where the operator changed something through it", async () => {
    const { reader, at } = reading(async () => changes(4, revoked("user:ada")), copied(3));
    reader.invalidate();
    expect((await at(0)).isRevoked(ada)).toBe(true);
  });
});
