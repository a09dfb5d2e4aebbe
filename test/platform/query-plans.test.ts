// Nothing scans: every statement that health, status, take, a result and the alarm make finds its rows by an index.
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";
import { type Endpoint, endpoint, noon, pass, setTime, statementsOf } from "./support/endpoint.ts";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

function plansOf(e: Endpoint, statements: readonly string[]): Promise<string[]> {
  return runInDurableObject(e.queue(), (_, { storage }) =>
    statements.flatMap((statement) => {
      const unbound = Array.from(statement.matchAll(/\?/g), () => 1);
      const plan = storage.sql.exec<{ detail: string }>(`EXPLAIN QUERY PLAN ${statement}`, ...unbound).toArray();
      return plan.map(({ detail }) => `${detail} | ${statement.replace(/\s+/g, " ")}`);
    }),
  );
}

/** An index that is walked in its order, up to a limit, is no scan. */
function isScan(plan: string): boolean {
  return /^(SCAN|USE TEMP)/.test(plan) && !/^SCAN CONSTANT ROW|^SCAN \w+ USING INDEX .* LIMIT \?$/.test(plan);
}

type Acts = Record<string, (e: Endpoint, id: string) => Promise<unknown>>;
const acts: Acts = {
  health: (e) => e.get("health"),
  status: (e, id) => e.get(`status/${id}`),
  submit: (e) => e.submit({ input: {}, webhook: "https://sluice.test/healthz" }),
  take: (e) => e.take(),
  "a result": async (e) => e.done(String((await e.take())[0])),
  "a chunk, and the stream": async (e, id) => {
    await e.take();
    await e.chunk(id, "a");
    await e.get(`stream/${id}`);
  },
  ping: async (e, id) => {
    await e.take();
    await e.ping("w1", id);
  },
  cancel: (e, id) => e.post(`cancel/${id}`),
  "the alarm": async (e) => {
    pass(24 * 3_600_000);
    await e.ring();
  },
};

it.each(Object.entries(acts))("%s", async (_, act) => {
  const e = endpoint();
  const id = await e.submit({ input: {}, webhook: "https://sluice.test/healthz" });
  const statements = await statementsOf(e, () => act(e, id));
  const plans = await plansOf(e, statements);
  if (statements.length > 0) expect(plans.length).toBeGreaterThan(0);
  expect(plans.filter(isScan)).toEqual([]);
});

it("would be noticed", async () => {
  const e = endpoint();
  await e.get("health");
  const [plan] = await plansOf(e, ["SELECT COUNT(*) FROM jobs WHERE worker = ? AND error = ?"]);
  expect(plan).toMatch(/^SCAN jobs/);
});
