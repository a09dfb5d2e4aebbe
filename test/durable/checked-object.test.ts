// What an object says of its storage, to several who ask at once.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";

afterEach(emptyStorage);

it("answers each of several checks at once by what that one wrote, and leaves nothing behind", async () => {
  await runInDurableObject(env.ACCOUNT.getByName("north"), async (account, { storage }) => {
    const texts = ["a", "b", "c", "d"];
    const checked = await Promise.all(texts.map((text) => account.selfcheck(text, false)));
    expect(checked).toEqual(texts.map(() => ({ ok: true })));
    expect(await storage.list()).toEqual(new Map());
  });
});
