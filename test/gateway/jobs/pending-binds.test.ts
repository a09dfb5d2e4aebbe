// Ids that wait for the payer's next call: each is handed out once, and somebody always has promised to flush them.
import { expect, it } from "vitest";
import { PendingBinds } from "../../../src/gateway/jobs/pending-binds.ts";

const bind = (name: string) => ({ admission: `admission-${name}`, upstreamId: name });
const now = 1_000_000;

it("asks one caller a payer to flush, until that was done", () => {
  const pending = new PendingBinds();
  expect(pending.add("ada", [bind("a")], now)).toBe(true);
  expect(pending.add("ada", [bind("b")], now + 500)).toBe(false);
  expect(pending.add("bob", [bind("c")], now + 500)).toBe(true);
  expect(pending.flush("ada")).toEqual([bind("a"), bind("b")]);
  expect(pending.add("ada", [bind("d")], now + 600)).toBe(true);
});

it("asks another where the one who promised is gone", () => {
  const pending = new PendingBinds();
  pending.add("ada", [bind("a")], now);
  expect(pending.add("ada", [bind("b")], now + pending.flushMs + 999)).toBe(false);
  expect(pending.add("ada", [bind("c")], now + pending.flushMs + 1_001)).toBe(true);
});

it("hands out each once, and what a lost call carried again", () => {
  const pending = new PendingBinds();
  pending.add("ada", [bind("a")], now);
  const carried = pending.take("ada");
  expect(carried).toEqual([bind("a")]);
  expect(pending.take("ada")).toEqual([]);
  pending.add("ada", carried, now + 10);
  expect(pending.take("ada")).toEqual([bind("a")]);
  expect(pending.take("eve")).toEqual([]);
});

it("fault H3: keeps nothing of payers who never call again, whoever had promised to flush", () => {
  const pending = new PendingBinds();
  for (let payer = 0; payer < 1000; payer++) pending.add(`payer-${payer}`, [bind("a")], now + payer);
  pending.take("payer-0");
  expect(pending.size).toBe(1000);
  pending.add("payer-1", [bind("b")], now + 60_000);
  pending.add("ada", [bind("c")], now + 10 * 60_000 + pending.flushMs + 999);
  expect(pending.size).toBe(2);
  expect(pending.take("payer-1")).toEqual([bind("a"), bind("b")]);
  expect(pending.take("payer-999")).toEqual([]);
});
