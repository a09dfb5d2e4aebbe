// The order of an account's tasks: those on the same thing follow each other.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it } from "vitest";
import { Reconciler } from "../../../src/platform/management/reconciler.ts";
import { emptyStorage } from "../../support/empty-storage.ts";

afterEach(emptyStorage);

it("attack: an endpoint that is deleted while its queue learns its settings is not configured after its wipe", async () => {
  await runInDurableObject(env.ACCOUNT.getByName("north"), async (_, { storage }) => {
    const done: string[] = [];
    const slow = Promise.withResolvers<void>();
    const reconciler = new Reconciler(storage.sql, async ({ kind, id }) => {
      if (kind === "configure" && id === "one") await slow.promise;
      done.push(`${kind} ${id}`);
    });
    const tasks = [
      ["configure", "one"],
      ["wipe", "one"],
      ["wipe", "two"],
    ] as const;
    for (const [kind, id] of tasks) reconciler.add(kind, id, 1);
    const [configured, wiped, other] = tasks.map(([kind, id]) => reconciler.perform(kind, id, 1));
    await other;
    slow.resolve();
    await Promise.all([configured, wiped]);
    expect(done).toEqual(["wipe two", "configure one", "wipe one"]);
  });
});
