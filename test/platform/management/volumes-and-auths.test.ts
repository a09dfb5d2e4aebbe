// Network volumes and container registry auths: what they keep, what they refuse, what they never say.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { migrate } from "../../../src/durable/migrate.ts";
import { steps } from "../../../src/platform/management/schema.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ask, auth, pod, refused, send, template, valid, volume } from "./management-client.ts";

afterEach(emptyStorage);

const inNorth = <T>(act: (storage: DurableObjectStorage) => T) =>
  runInDurableObject(env.ACCOUNT.getByName("north"), (_, { storage }) => act(storage));

describe("a network volume", () => {
  it("is created, found, listed and deleted", async () => {
    const made = await ask("north", "POST", "/networkvolumes", { ...valid.volume, unknown: 1 });
    expect(made).toEqual({ ...valid.volume, id: made.id });
    expect(await ask("north", "GET", `/networkvolumes/${made.id}`)).toEqual(made);
    expect(await ask("north", "GET", "/networkvolumes")).toEqual([made]);
    await ask("north", "DELETE", `/networkvolumes/${made.id}`);
    await refused("north", "NOT_FOUND", "GET", `/networkvolumes/${made.id}`);
    expect(await ask("north", "GET", "/networkvolumes")).toEqual([]);
  });

  it.each([
    ["PATCH", ""],
    ["POST", "/update"],
  ])("may be renamed and grow by %s%s, never shrink", async (method, suffix) => {
    const { id } = await volume("north", { size: 10 });
    const path = `/networkvolumes/${id}${suffix}`;
    expect(await ask("north", method, path, { name: "new" })).toMatchObject({ name: "new", size: 10 });
    expect(await ask("north", method, path, { size: 10 })).toMatchObject({ size: 10 });
    expect(await ask("north", method, path, { size: 11 })).toMatchObject({ name: "new", size: 11 });
    expect(await refused("north", "INVALID_REQUEST", method, path, { size: 10 })).toMatch(/^size: may only grow/);
    expect(await ask("north", "GET", `/networkvolumes/${id}`)).toMatchObject({ size: 11 });
  });

  it("cannot go while a Pod has it, running or not", async () => {
    const { id } = await volume("north");
    const user = await pod("north", { networkVolumeId: id });
    await refused("north", "IN_USE", "DELETE", `/networkvolumes/${id}`);
    await ask("north", "POST", `/pods/${user.id}/stop`);
    await refused("north", "IN_USE", "DELETE", `/networkvolumes/${id}`);
    await ask("north", "DELETE", `/pods/${user.id}`);
    await ask("north", "DELETE", `/networkvolumes/${id}`);
  });
});

describe("a container registry auth", () => {
  it("is created, found, listed and deleted, and answers its id and name alone", async () => {
    const made = await ask("north", "POST", "/containerregistryauth", valid.auth);
    expect(made).toEqual({ id: made.id, name: valid.auth.name });
    expect(await ask("north", "GET", `/containerregistryauth/${made.id}`)).toEqual(made);
    expect(await ask("north", "GET", "/containerregistryauth")).toEqual([made]);
    await ask("north", "DELETE", `/containerregistryauth/${made.id}`);
    await refused("north", "NOT_FOUND", "GET", `/containerregistryauth/${made.id}`);
    await ask("north", "POST", "/containerregistryauth", valid.auth);
  });

  it("has a name of its own", async () => {
    await ask("north", "POST", "/containerregistryauth", valid.auth);
    await refused("north", "NAME_TAKEN", "POST", "/containerregistryauth", valid.auth);
    await ask("south", "POST", "/containerregistryauth", valid.auth);
  });

  it("cannot go while a template or a Pod names it", async () => {
    const { id } = await auth("north");
    const named = await template("north", { containerRegistryAuthId: id });
    const user = await pod("north", { containerRegistryAuthId: id });
    await refused("north", "IN_USE", "DELETE", `/containerregistryauth/${id}`);
    await ask("north", "DELETE", `/templates/${named.id}`);
    await refused("north", "IN_USE", "DELETE", `/containerregistryauth/${id}`);
    await ask("north", "PATCH", `/pods/${user.id}`, { containerRegistryAuthId: null });
    await ask("north", "DELETE", `/containerregistryauth/${id}`);
  });

  it("keeps its name and for whom it is, never the password", async () => {
    const { id } = await ask("north", "POST", "/containerregistryauth", valid.auth);
    const rows = await inNorth(({ sql }) => sql.exec("SELECT * FROM registry_auths").toArray());
    const { sealed, ...row } = rows[0] as { sealed: ArrayBuffer };
    expect(row).toMatchObject({ json: JSON.stringify({ id, name: valid.auth.name }), username: valid.auth.username });
    expect(sealed.byteLength).toBe(0);
    expect(JSON.stringify(row)).not.toContain(valid.auth.password);
  });

  it("loses the password that an earlier version kept, and nothing else", async () => {
    const record = { id: "old-auth", name: "old" };
    await inNorth(async (storage) => {
      await storage.deleteAll();
      migrate(storage, steps.slice(0, 1));
      storage.sql.exec("INSERT INTO registry_auths (json, sealed) VALUES (?, x'010203')", JSON.stringify(record));
      migrate(storage, steps);
      const [row] = storage.sql.exec("SELECT length(sealed) AS sealed, username FROM registry_auths").toArray();
      expect(row).toEqual({ sealed: 0, username: "" });
    });
    expect(await ask("north", "GET", "/containerregistryauth")).toEqual([record]);
  });

  it("never comes back in any answer", async () => {
    const { id: containerRegistryAuthId } = await ask("north", "POST", "/containerregistryauth", valid.auth);
    const { id: templateId } = await template("north", { containerRegistryAuthId, isPublic: true });
    const user = await pod("north", { templateId });
    const worker = await template("north", { containerRegistryAuthId, isServerless: true });
    const { id: endpointId } = await ask("north", "POST", "/endpoints", { templateId: worker.id });
    const paths = [
      ...["/containerregistryauth", `/containerregistryauth/${containerRegistryAuthId}`, "/pods?includeTemplate=true"],
      ...["/templates?includeEndpointBoundTemplates=true", `/pods/${user.id}?includeTemplate=true`],
      ...[`/endpoints/${endpointId}?includeTemplate=true`, "/billing/pods", "/networkvolumes"],
    ];
    const taken = await send("north", "POST", "/v1/containerregistryauth", valid.auth);
    const invalid = await send("north", "POST", "/v1/containerregistryauth", { ...valid.auth, name: 1 });
    const answers = await Promise.all(paths.map((path) => send("north", "GET", `/v1${path}`)));
    answers.push(await send("south", "GET", "/v1/templates?includePublicTemplates=true"), taken, invalid);
    for (const { text } of answers) {
      expect(text).not.toContain(valid.auth.password);
      expect(text).not.toContain(valid.auth.username);
    }
  });
});
