// The caller's own media: listed newest first, page by page, and deleted by nobody else.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { model, origin, painted, Studio, World } from "./studio.ts";

let world: World;
let studio: Studio;
beforeEach(() => {
  world = new World();
  studio = new Studio();
});
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

interface Page {
  images: { key: string; url: string; model: string; expiresAt: string; cost: number }[];
  cursor: string | null;
}
const list = async (token: string, query = "") => (await studio.ask(`/images${query}`, token)).json<Page>();

describe("the gallery", () => {
  it("has what the caller's jobs ended with, newest first, each once", async () => {
    const token = await studio.token("ada");
    const links: string[] = [];
    const start = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    for (let seed = 1; seed <= 5; seed++) {
      vi.setSystemTime(start + seed * 1000);
      const { path, id } = await studio.link(token, { input: { seed } });
      await new Studio().ask(`/v2/${model}/status/${id}`, token);
      links.unshift(origin + path);
    }
    const whole = await list(token);
    expect(whole.images.map(({ url }) => url)).toEqual(links);
    expect(whole.cursor).toBeNull();
    expect(whole.images[0]).toMatchObject({ model, field: "image_url", cost: 0.0025, expiresAt: expect.any(String) });

    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Page = await list(token, `?limit=2${cursor && `&cursor=${cursor}`}`);
      expect(page.images.length).toBeLessThanOrEqual(2);
      seen.push(...page.images.map(({ url }) => url));
      cursor = page.cursor;
    }
    expect(seen).toEqual(links);
    await expectProblem(await studio.ask("/images?cursor=nonsense", token), "INVALID_REQUEST");
    await expectProblem(await studio.ask("/images?limit=1000", token), "INVALID_REQUEST");
    await expectProblem(await studio.ask("/images", undefined), "UNAUTHORIZED");
  });

  it("loses what expired", async () => {
    const token = await studio.token("ada");
    const end = Date.now() + 30 * 60_000;
    world.submitted = () => painted(`https://cdn.example.net/a.png?Expires=${Math.floor(end / 1000)}`);
    await studio.link(token);
    expect((await list(token)).images).toHaveLength(1);
    vi.useFakeTimers({ toFake: ["Date"], now: end });
    expect((await list(token)).images).toEqual([]);
  });

  it("is nobody else's, nor is its key", async () => {
    const [ada, bob] = [await studio.token("ada"), await studio.token("bob")];
    const { path } = await studio.link(ada);
    expect((await list(bob)).images).toEqual([]);
    await expectProblem(await studio.ask(path, bob, "DELETE"), "NOT_FOUND");
    await expectProblem(await studio.ask(path, undefined, "DELETE"), "UNAUTHORIZED");
    expect((await list(ada)).images).toHaveLength(1);
    expect((await studio.ask(path, undefined)).status).toBe(200);
    expect((await studio.ask(path, ada, "DELETE")).status).toBe(204);
  });
});

describe("a deleted link", () => {
  it("is gone, is answered to no request again, and comes back by no later look", async () => {
    const token = await studio.token("ada");
    const { path, id } = await studio.link(token);
    expect((await studio.ask(path, undefined)).status).toBe(200);
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    await expectProblem(await studio.ask(path, undefined), "NOT_FOUND");
    await expectProblem(await studio.ask(path, token, "DELETE"), "NOT_FOUND");
    await new Studio().ask(`/v2/${model}/status/${id}`, token);
    await expectProblem(await new Studio().ask(path, undefined), "NOT_FOUND");
    expect((await list(token)).images).toEqual([]);
    const again = await studio.paint(token);
    expect(again.headers.get("X-Cache")).toBe("MISS");
    expect((await list(token)).images).toHaveLength(1);
  });
});
