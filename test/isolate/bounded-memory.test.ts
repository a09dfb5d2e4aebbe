// What an isolate remembers: no more than its limit, no longer than each entry says.
import { describe, expect, it } from "vitest";
import { BoundedMemory } from "../../src/isolate/bounded-memory.ts";

describe("a bounded memory", () => {
  it("forgets an entry at its moment", () => {
    const memory = new BoundedMemory<string>(10_000);
    memory.set("a", "A", 100);
    expect([memory.get("a", 99), memory.get("a", 100), memory.get("b", 0)]).toEqual(["A", undefined, undefined]);
  });

  it("keeps what is asked for, and forgets the rest when it is full", () => {
    const memory = new BoundedMemory<number>(20_000);
    memory.set("asked for", 1, 100);
    memory.set("forgotten", 2, 100);
    for (let n = 0; n < 1000; n++) {
      memory.set(`other ${n}`, n, 100);
      expect(memory.get("asked for", 0)).toBe(1);
    }
    expect(memory.get("forgotten", 0)).toBeUndefined();
    const kept = [...Array(1000).keys()].filter((n) => memory.get(`other ${n}`, 0) !== undefined);
    expect(kept.length).toBeGreaterThan(10);
    expect(kept.length).toBeLessThan(20_000 / 256);
  });

  it("forgets what it is told to, young or old", () => {
    const memory = new BoundedMemory<number>(4_000);
    memory.set("old", 1, 100);
    for (let n = 0; n < 6; n++) memory.set(`other ${n}`, n, 100);
    memory.set("young", 2, 100);
    for (const key of ["old", "young"]) {
      memory.forget(key);
      expect(memory.get(key, 0)).toBeUndefined();
    }
  });

  it("keeps fewer entries of long values", () => {
    const memory = new BoundedMemory<string>(20_000);
    const value = "x".repeat(1_000);
    for (let n = 0; n < 100; n++) memory.set(`key ${n}`, value, 100, value.length);
    const kept = [...Array(100).keys()].filter((n) => memory.get(`key ${n}`, 0) !== undefined);
    expect(kept.length).toBeGreaterThan(5);
    expect(kept.length * value.length).toBeLessThan(20_000);
  });

  it("keeps an entry larger than itself no longer than until the next", () => {
    const memory = new BoundedMemory<number>(1_000);
    memory.set("x".repeat(5_000), 1, 100);
    for (const key of ["a", "b", "c"]) memory.set(key, 1, 100);
    expect(memory.get("x".repeat(5_000), 0)).toBeUndefined();
  });
});
