// KV fails in the middle of what is done with links: no error of ours, and no link that leads nowhere.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { kept, Studio, World } from "./studio.ts";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(emptyStorage);

/** An isolate whose KV refuses its writes and deletions from this number on, counted from 1. */
function failingFrom(number: number, settings: object): Studio {
  let writes = 0;
  const failing =
    (method: "put" | "delete") =>
    async (...words: unknown[]) => {
      writes += 1;
      if (writes >= number) throw new Error(`KV ${method} failed: 500 Internal Server Error`);
      return Reflect.apply(env.IMAGES[method], env.IMAGES, words);
    };
  const get = env.IMAGES.get.bind(env.IMAGES);
  return new Studio({ ...settings, IMAGES: { get, put: failing("put"), delete: failing("delete") } });
}

/** Of what the objects write and delete from now on, one thing is refused. */
function failAt(number: number): void {
  let writes = 0;
  for (const method of ["put", "delete"] as const) {
    const usual = env.IMAGES[method];
    vi.spyOn(Object.getPrototypeOf(env.IMAGES), method).mockImplementation(async function (this: unknown, ...words) {
      if (++writes === number) throw new Error(`KV ${method} failed: 500 Internal Server Error`);
      return Reflect.apply(usual, this, words);
    });
  }
}

describe.each(["user", "shared"])("in the scope %s", (REUSE_SCOPE) => {
  it.each([1, 2])("a deletion whose write %i fails is asked for again, and is then whole", async (number) => {
    const studio = new Studio({ REUSE_SCOPE });
    const token = await studio.token("ada");
    const { path } = await studio.link(token);
    await vi.waitFor(async () => expect(await kept("reuse/")).toHaveLength(1));
    failAt(number);
    await expectProblem(await studio.ask(path, token, "DELETE"), "UNAVAILABLE");
    expect((await new Studio({ REUSE_SCOPE }).ask(path, token, "DELETE")).status).toBe(204);

    const again = await new Studio({ REUSE_SCOPE }).link(token);
    expect((await studio.ask(again.path, undefined)).status).toBe(200);
    await expectProblem(await studio.ask(path, undefined), "NOT_FOUND");
  });
});

it.each([1, 2])(
  "who would be given another's answer, and KV fails at write %i, is given one of his own",
  async (number) => {
    const settings = { REUSE_SCOPE: "shared" };
    const studio = new Studio(settings);
    await studio.link(await studio.token("ada"));
    const away = failingFrom(number, settings);
    const bob = await away.token("bob");
    const response = await away.paint(bob);
    expect([response.status, response.headers.get("X-Cache")]).toEqual([200, "MISS"]);
    const { output } = await response.json<{ output: { image_url: string } }>();
    expect((await studio.ask(new URL(output.image_url).pathname, undefined)).status).toBe(200);
    expect(world.count("/run")).toBe(2);
  },
);

it("who names an idempotency key for it hears that it is not to be had at the moment", async () => {
  const settings = { REUSE_SCOPE: "shared" };
  const studio = new Studio(settings);
  await studio.link(await studio.token("ada"));
  const away = failingFrom(1, settings);
  const headers = { "Idempotency-Key": "once" };
  await expectProblem(await away.paint(await away.token("bob"), { headers }), "UNAVAILABLE");
  expect(world.count("/run")).toBe(1);
});
