// Exactness over processes: killed again and again in the middle of 200 parallel submits, no more than the limit ever
// reaches the upstream.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Rule } from "../../src/gateway/operator-settings/rules.ts";
import { amount, casesOf } from "../support/amount.ts";
import { Server } from "../support/serve.ts";
import { inParallel } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";
import { exchange } from "./support/exchange.ts";
import { ScriptedUpstream, upstreamKey } from "./support/scripted-upstream.ts";

const limit = amount(4000, 600);
const kills = amount(6, 2);
const atOnce = 200;
const model = "opened";
const jobUsd = 0.5;
/** What is cut off by a kill, or refused, is not asked again: so there are more than the limit lets through. */
const submits = limit + (kills + 1) * atOnce;

const units: readonly (readonly [unit: Rule["unit"], rule: Rule])[] = [
  ["usd", { unit: "usd", limit: limit * jobUsd, per: "day" }],
  ["requests", { unit: "requests", limit, per: "day" }],
  ["jobs", { unit: "jobs", limit }],
];

let upstream: ScriptedUpstream;
let server: Server;
beforeEach(async () => {
  upstream = await new ScriptedUpstream().listen();
  const settings = { UPSTREAM_URL: upstream.url, UPSTREAM_API_KEY: upstreamKey };
  server = await Server.start({ settings, tmpfs: true, floodLimit: 1_000_000 });
});
afterEach(async () => {
  await server.stop();
  await upstream.close();
});

describe(`a limit of ${limit}, ${atOnce} in parallel, ${kills} times killed`, () => {
  it.each(casesOf(units, 1))("of %s is never passed", { timeout: 180_000 }, async (_, rule) => {
    const opened = { passthrough: true, maxUsd: jobUsd };
    await exchange(server, "PUT", `/admin/models/${model}`, testSettings.ADMIN_TOKEN, opened);
    const asked = { user: "ada", plan: "unlimited", rules: [rule] };
    const { token } = await exchange<{ token: string }>(server, "POST", "/tokens", testSettings.APP_SECRET, asked);
    const crashes = new Crashes();
    const outcomes = await inParallel(Array.from({ length: submits }), atOnce, async () => {
      await crashes.over;
      const outcome = await submit(token);
      await crashes.mayStrike();
      return outcome;
    });
    expect(crashes.count).toBe(kills);
    const reached = upstream.jobs.length;
    const count = (outcome: string) => outcomes.filter((one) => one === outcome).length;
    expect(reached).toBeLessThanOrEqual(limit);
    // What was admitted and killed before it was relayed keeps its place: at most all that were under way at each kill.
    expect(reached).toBeGreaterThanOrEqual(limit - kills * atOnce);
    expect(count("accepted")).toBeLessThanOrEqual(reached);
    expect(count("refused")).toBeGreaterThan(0);
    const others = outcomes.filter((outcome) => !["accepted", "refused", "cut"].includes(outcome));
    expect(others).toEqual([]);
    // The last place is given away: whoever comes now is refused.
    expect(await submit(token)).toBe("refused");
  });
});

async function submit(token: string): Promise<"accepted" | "refused" | "cut" | string> {
  const headers = { Authorization: `Bearer ${token}` };
  try {
    const response = await fetch(`${server.url}/v2/${model}/run`, { method: "POST", headers, body: '{"input":{}}' });
    const text = await response.text();
    if (response.status === 200) return "accepted";
    return response.status === 429 ? "refused" : text;
  } catch {
    return "cut";
  }
}

/** Kills the process at even shares of the limit, in the middle of whatever the others do. */
class Crashes {
  count = 0;
  over: Promise<void> = Promise.resolve();

  async mayStrike(): Promise<void> {
    if (this.count >= kills || upstream.jobs.length < ((this.count + 1) * limit) / (kills + 1)) return;
    this.count += 1;
    this.over = server.kill9().then(() => server.restart());
    await this.over;
  }
}
