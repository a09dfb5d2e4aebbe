// Nothing that one test stored meets the next, in memory or not.
import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { stubOf } from "./gateway/quota/admissions.ts";
import { emptyStorage } from "./support/empty-storage.ts";

it.each([
  ["is in memory", async () => {}],
  ["was evicted", () => evictDurableObject(stubOf("user:ada"))],
  ["was aborted with all others", abortAllDurableObjects],
])("empties an object that %s", async (_how, leave) => {
  const meter = stubOf("user:ada");
  await meter.configure({ ...(await meter.settings()), plan: "pro" });
  await leave();
  await emptyStorage();
  expect((await stubOf("user:ada").settings()).plan).toBe(undefined);
});

it("empties KV and R2 that nobody asks any more", async () => {
  await env.IMAGES.put("an image", "of something");
  await env.MEDIA.put("a film", "of something");
  await abortAllDurableObjects();
  await emptyStorage();
  expect([await env.IMAGES.get("an image"), await env.MEDIA.get("a film")]).toEqual([null, null]);
});
