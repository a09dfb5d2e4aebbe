// A large body against the payer's real rules: refused by its true price and by nothing else.
import { describe, expect, it } from "vitest";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, mintToken, watchCanary } from "./fake-upstream.ts";

watchCanary();

const film = "wan-2-6-i2v";
const photo = `data:image/png;base64,${"A".repeat(3 * 1024 * 1024)}`;
const of = (more: object) => JSON.stringify({ input: { prompt: "a lighthouse", image: photo, ...more } });

async function withUsd(limit: number, user: string) {
  const upstream = new FakeUpstream(() => json({ id: `job-${upstream.seen.length}`, status: "IN_QUEUE" }));
  const rules = [{ unit: "usd", limit, per: "day" }];
  const key = await mintToken(upstream.env, { user, plan: "unlimited", rules });
  const run = (body: string) => upstream.call("POST", `/v2/${film}/run`, { key, body });
  const reserved = async () => {
    const usage = await (await upstream.call("GET", "/usage", { key })).json<{ jobs: { reservedUsd: number }[] }>();
    return usage.jobs.map(({ reservedUsd }) => reservedUsd);
  };
  return { upstream, run, reserved };
}

describe("a 3 MB photo", () => {
  it("is taken where its five seconds are within the day's money, though its model may cost more", async () => {
    const { run, reserved } = await withUsd(0.6, "thrifty");
    expect((await run(of({}))).status).toBe(200);
    expect(await reserved()).toEqual([0.5]);
  });

  it("is refused where they are not: the model service never has all of it, and nothing stays reserved", async () => {
    let whole: boolean | undefined;
    const { upstream, run, reserved } = await withUsd(0.6, "spender");
    upstream.answer = (seen) => {
      whole = seen.body.endsWith("}}");
      return json({ id: "job-1", status: "IN_QUEUE" });
    };
    await expectProblem(await run(of({ duration: 10 })), "QUOTA_EXCEEDED");
    expect(whole).not.toBe(true);
    expect(await reserved()).toEqual([]);
    upstream.answer = () => json({ id: "job-2", status: "IN_QUEUE" });
    expect((await run(of({}))).status).toBe(200);
  });
});
