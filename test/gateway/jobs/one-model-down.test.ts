// A model that fails, or that somebody makes fail, is that model's and that caller's trouble alone.
import { describe, expect, it } from "vitest";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";

const other = "p-image-t2i";
watchCanary();

const isModels = (path: string) => path.startsWith(`/v2/${model}/`);
/** It asks for more patience than there is, so that nothing is sent twice. */
const away = () => json({}, 503, { "Retry-After": "60" });
const failing = () =>
  new FakeUpstream(({ path }) => (isModels(path) ? away() : json({ id: "job-1", status: "IN_QUEUE" })));
const submitBy = async (upstream: FakeUpstream, user: string, to = model) =>
  upstream.call("POST", `/v2/${to}/run`, { key: await upstream.token(user), body: prompt });
const codeOf = async (response: Response) => (await response.json<{ code?: string }>()).code;

describe("attack M1: a model that answers 503", () => {
  it("takes down neither another model nor, by one caller's calls, itself", async () => {
    const upstream = failing();
    await Promise.all(Array.from({ length: 25 }, () => submitBy(upstream, "mallory")));
    expect((await submitBy(upstream, "ada", other)).status).toBe(200);
    upstream.answer = () => json({ id: "job-1", status: "IN_QUEUE" });
    expect((await submitBy(upstream, "ada")).status).toBe(200);
  });

  it("is left alone for a moment once five callers met with that, and asks no money for it", async () => {
    const upstream = failing();
    for (const user of ["ada", "bob", "eve", "mallory", "zed"]) await submitBy(upstream, user);
    const asked = upstream.seen.length;
    const refused = await submitBy(upstream, "yan");
    expect(refused.headers.get("Retry-After")).toBe("5");
    expect(await codeOf(refused)).toBe("UPSTREAM_DOWN");
    expect(upstream.seen).toHaveLength(asked);
    expect(await upstream.jobs("yan")).toEqual([]);
    expect((await submitBy(upstream, "ada", other)).status).toBe(200);
  });

  it("is not closed by one who has a /48 of addresses", async () => {
    const upstream = failing();
    const address = (visitor: number) => ({ "CF-Connecting-IP": `2001:db8:7:${visitor}::1` });
    for (let visitor = 1; visitor <= 8; visitor++) {
      const session = await upstream.call("POST", "/sessions", { key: "", headers: address(visitor) });
      const { token } = await session.json<{ token: string }>();
      const headers = address(visitor);
      await upstream.call("POST", `/v2/${model}/run`, { key: token, headers, body: prompt });
    }
    expect(upstream.seen).toHaveLength(8);
    upstream.answer = () => json({ id: "job-1", status: "IN_QUEUE" });
    expect((await submitBy(upstream, "ada")).status).toBe(200);
  });
});
