// What an answer waited for, said in words of ours alone.
import { afterEach, describe, expect, it } from "vitest";
import { type Step, serverTiming, steps, timed } from "../../src/http/server-timing.ts";
import { model, Studio, World } from "../gateway/media/studio.ts";
import { emptyStorage } from "../support/empty-storage.ts";

const said = (response: Response) => response.headers.get("Server-Timing") ?? "";
const stepsIn = (text: string) => text.split(", ").map((part) => part.split(";")[0]);
const grammar = /^((identity|kv|meter|upstream);dur=\d+, )*total;dur=\d+$/;

afterEach(emptyStorage);

describe("Server-Timing", () => {
  it("says whom a run, a status, a hit and a picture waited for, and nothing of what was asked", async () => {
    new World();
    const studio = new Studio();
    const token = await studio.token("ada");
    const first = await studio.paint(token);
    expect(stepsIn(said(first))).toEqual(["identity", "kv", "meter", "upstream", "total"]);
    const { id, output } = await first.json<{ id: string; output: { image_url: string } }>();
    const status = await studio.ask(`/v2/${model}/status/${id}`, token);
    expect(stepsIn(said(status))).toEqual(["upstream", "total"]);
    const hit = await studio.paint(token);
    expect(hit.headers.get("X-Cache")).toBe("HIT");
    expect(stepsIn(said(hit))).toContain("kv");
    expect(stepsIn(said(hit))).not.toContain("upstream");
    const picture = await studio.ask(new URL(output.image_url).pathname, undefined);
    expect(stepsIn(said(picture))).toEqual(["kv", "total"]);
    for (const answer of [first, status, hit, picture]) expect(said(answer)).toMatch(grammar);
  });

  it("is the same for whoever names things oddly", async () => {
    const studio = new Studio();
    const token = await studio.token('"};dur=9, evil');
    for (const path of ["/usage", "/v2/%22;dur=9,evil/status/x", "/images/;dur=9"]) {
      expect(said(await studio.ask(path, token))).toMatch(grammar);
    }
  });

  it("adds up the calls of one step, and says those that failed", async () => {
    const exchange: Parameters<typeof timed>[0] = {};
    await timed(exchange, "kv", Promise.resolve(1));
    await expect(timed(exchange, "kv", Promise.reject(new Error("away")))).rejects.toThrow("away");
    exchange.waitedMs = { upstream: 7, kv: (exchange.waitedMs?.kv ?? 0) + 3 };
    expect(serverTiming({ ...exchange, startedAt: Date.now() })).toMatch(/^kv;dur=\d+, upstream;dur=7, total;dur=\d+$/);
    expect(steps satisfies readonly Step[]).toHaveLength(4);
  });
});
