// Lists of large records: they come in pages that a call between objects can carry, whoever made the records.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { call } from "../../support/front-door.ts";
import { testSettings } from "../../support/settings.ts";
import { endpoint, type Json, pod, send, template } from "./management-client.ts";

afterEach(emptyStorage);

/** As large as an earlier version let records be, and of characters that take two bytes in a call. */
const large = `€${"x".repeat(990_000)}`;

/** What no request is let in with any more. */
const grow = (account: string, table: string) =>
  runInDurableObject(env.ACCOUNT.getByName(account), (_, { storage: { sql } }) => {
    sql.exec(`UPDATE ${table} SET json = json_set(json, '$.env', json_object('LARGE', ?))`, large);
  });

async function lengthOf(path: string): Promise<number> {
  const { status, json } = await send("north", "GET", `/v1${path}`);
  expect(status).toBe(200);
  return (json as Json[]).length;
}

describe("attack: many large records", () => {
  it("that are one account's public templates break no list of another", async () => {
    for (let count = 0; count < 36; count++) await template("south", { isPublic: true });
    await grow("public/catalogue", "public_templates");
    expect(await lengthOf("/templates?includePublicTemplates=true")).toBe(36);
  });

  it("that are endpoints are listed, with all that is asked for beside them", async () => {
    const made = await template("north", { isServerless: true });
    for (let count = 0; count < 18; count++) await endpoint("north", { templateId: made.id });
    await grow("north", "templates");
    await grow("north", "endpoints");
    expect(await lengthOf("/endpoints?includeTemplate=true")).toBe(18);
  });

  it("that are Pods are listed, with all that is asked for beside them", async () => {
    const made = await template("north");
    for (let count = 0; count < 18; count++) await pod("north", { templateId: made.id });
    await grow("north", "templates");
    await grow("north", "pods");
    expect(await lengthOf("/pods?includeTemplate=true")).toBe(18);
  });

  it("that are the workers of one endpoint do not break the list of it", async () => {
    const { id } = await endpoint("north");
    await endpoint("north");
    const names = Array.from({ length: 40 }, (_, n) => `w${n}`);
    await Promise.all(names.map((name) => send("north", "GET", `/v2/${id}/ping/${name}`)));
    await grow("north", "endpoints");
    expect(await lengthOf("/endpoints?includeWorkers=true")).toBe(2);
    expect(await lengthOf("/pods?includeWorkers=true")).toBeGreaterThan(0);
  });

  it("are listed to the operator, too", async () => {
    const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
    const settings = { PLATFORM_API_KEY: "another-key-of-the-platform-0123456789" };
    const list = () => call("GET", "/v1/templates", { headers, settings });
    for (let count = 0; count < 12; count++) {
      const body = JSON.stringify({ name: `t${count}`, imageName: "example.com/t:1" });
      await call("POST", "/v1/templates", { headers, body });
    }
    await grow("default", "templates");
    const answer = await list();
    expect([answer.status, (await answer.json<Json[]>()).length]).toEqual([200, 12]);
    await runInDurableObject(env.ACCOUNT.getByName("default"), (_, { storage: { sql } }) => {
      sql.exec("UPDATE templates SET json = json_set(json, '$.readme', ?)", settings.PLATFORM_API_KEY);
    });
    expect(await (await list()).json()).toMatchObject({ code: "UPSTREAM_BAD_ANSWER" });
  });
});
