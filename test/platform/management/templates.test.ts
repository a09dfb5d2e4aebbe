// Templates: their fields, their lists, what others see of them, what they earn.
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { officialTemplates } from "../../../src/platform/management/template.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ask, auth, endpoint, ids, type Json, pod, refused, template, valid } from "./desk.ts";

afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const everything = {
  name: "everything",
  imageName: "example.com/all:2",
  category: "AMD",
  containerDiskInGb: 7,
  dockerEntrypoint: ["/bin/sh", "-c"],
  dockerStartCmd: ["serve"],
  env: { LEVEL: "3" },
  isPublic: false,
  isServerless: true,
  ports: ["80/http", "5432/tcp"],
  readme: "# All",
  volumeInGb: 3,
  volumeMountPath: "/data",
};

const list = (flags = "") => ask<Json[]>("north", "GET", `/templates${flags}`);

describe("a template", () => {
  it("is created with the contract's defaults, and found again", async () => {
    const created = await ask("north", "POST", "/templates", valid.template);
    expect(created).toEqual({
      ...valid.template,
      id: created.id,
      category: "NVIDIA",
      containerDiskInGb: 50,
      dockerEntrypoint: [],
      dockerStartCmd: [],
      earned: 0,
      env: {},
      isPublic: false,
      isRunpod: false,
      isServerless: false,
      ports: ["8888/http", "22/tcp"],
      readme: "",
      runtimeInMin: 0,
      volumeInGb: 20,
      volumeMountPath: "/workspace",
    });
    expect(await ask("north", "GET", `/templates/${created.id}`)).toEqual(created);
    expect(await list()).toEqual([created]);
  });

  it("keeps every field, and tolerates those it does not know", async () => {
    const { id: containerRegistryAuthId } = await auth("north");
    const body = { ...everything, containerRegistryAuthId, somethingElse: { deep: true } };
    const { somethingElse: _, ...known } = body;
    const created = await ask("north", "POST", "/templates", body);
    expect(created).toMatchObject(known);
    expect(created).not.toHaveProperty("somethingElse");
  });

  it.each([
    ["PATCH", ""],
    ["POST", "/update"],
  ])("is changed by %s%s: what is named, and nothing else", async (method, suffix) => {
    const { id: containerRegistryAuthId } = await auth("north");
    const before = await template("north", { containerRegistryAuthId, env: { A: "1" } });
    const after = await ask("north", method, `/templates/${before.id}${suffix}`, { readme: "new", env: { B: "2" } });
    expect(after).toEqual({ ...before, readme: "new", env: { B: "2" } });
    expect(await ask("north", "GET", `/templates/${before.id}`)).toEqual(after);
    const freed = await ask("north", method, `/templates/${before.id}${suffix}`, { containerRegistryAuthId: "" });
    expect(freed).not.toHaveProperty("containerRegistryAuthId");
  });

  it("keeps its name when it is changed to the name that it has", async () => {
    const { id, name } = await template("north");
    await ask("north", "PATCH", `/templates/${id}`, { name });
  });

  it("is gone once deleted, and its name is free", async () => {
    const { id, name } = await template("north");
    await ask("north", "DELETE", `/templates/${id}`);
    await refused("north", "NOT_FOUND", "GET", `/templates/${id}`);
    await refused("north", "NOT_FOUND", "DELETE", `/templates/${id}`);
    await ask("north", "POST", "/templates", { ...valid.template, name });
  });

  it("cannot go while a Pod or an endpoint uses it", async () => {
    const [one, two] = [await template("north"), await template("north")];
    const { id: user } = await pod("north", { templateId: one.id });
    const { id: bound } = await endpoint("north", { templateId: two.id });
    await refused("north", "IN_USE", "DELETE", `/templates/${one.id}`);
    await refused("north", "IN_USE", "DELETE", `/templates/${two.id}`);
    await ask("north", "DELETE", `/pods/${user}`);
    await ask("north", "DELETE", `/endpoints/${bound}`);
    await ask("north", "DELETE", `/templates/${one.id}`);
    await ask("north", "DELETE", `/templates/${two.id}`);
  });
});

describe("lists and look-ups", () => {
  it("leave out what endpoints use, unless asked", async () => {
    const [free, bound] = [await template("north"), await template("north")];
    const { id } = await endpoint("north", { templateId: bound.id });
    expect(ids(await list())).toEqual([free.id]);
    expect(ids(await list("?includeEndpointBoundTemplates=true"))).toEqual(ids([free, bound]));
    await refused("north", "NOT_FOUND", "GET", `/templates/${bound.id}`);
    await ask("north", "GET", `/templates/${bound.id}?includeEndpointBoundTemplates=true`);
    await ask("north", "PATCH", `/endpoints/${id}`, { templateId: free.id });
    expect(ids(await list())).toEqual([bound.id]);
    await ask("north", "DELETE", `/endpoints/${id}`);
    expect(ids(await list())).toEqual(ids([free, bound]));
  });

  it("leave out the official ones, unless asked", async () => {
    expect(officialTemplates.length).toBeGreaterThan(2);
    expect(await list()).toEqual([]);
    expect(await list("?includeRunpodTemplates=true")).toEqual(officialTemplates);
    for (const { id } of officialTemplates) {
      await refused("north", "NOT_FOUND", "GET", `/templates/${id}`);
      expect((await ask("north", "GET", `/templates/${id}?includeRunpodTemplates=true`))["isRunpod"]).toBe(true);
      await refused("north", "NOT_FOUND", "PATCH", `/templates/${id}`, { readme: "mine" });
      await refused("north", "NOT_FOUND", "DELETE", `/templates/${id}`);
    }
  });

  it("leave out the public ones of others, unless asked; one's own are always there", async () => {
    const { id: secret } = await auth("south");
    const theirs = await template("south", { isPublic: true, containerRegistryAuthId: secret });
    const hidden = await template("south");
    const own = await template("north", { isPublic: true });
    const { containerRegistryAuthId: _, ...shown } = theirs;
    expect(await list()).toEqual([own]);
    expect(await list("?includePublicTemplates=true")).toEqual([own, shown]);
    expect(await ask("north", "GET", `/templates/${theirs.id}?includePublicTemplates=true`)).toEqual(shown);
    await refused("north", "NOT_FOUND", "GET", `/templates/${theirs.id}`);
    await refused("north", "NOT_FOUND", "GET", `/templates/${hidden.id}?includePublicTemplates=true`);
    await refused("north", "NOT_FOUND", "PATCH", `/templates/${theirs.id}`, { readme: "mine now" });
    await refused("north", "NOT_FOUND", "DELETE", `/templates/${theirs.id}`);
  });
});

describe("a public template", () => {
  const seen = (id: string) => ask("north", "GET", `/templates/${id}?includePublicTemplates=true`);

  it("is shown to others as it is now, and no more when it is private or deleted", async () => {
    const { id } = await template("south", { isPublic: true });
    await ask("south", "PATCH", `/templates/${id}`, { readme: "second edition" });
    expect(await seen(id)).toMatchObject({ readme: "second edition" });
    await ask("south", "PATCH", `/templates/${id}`, { isPublic: false });
    await refused("north", "NOT_FOUND", "GET", `/templates/${id}?includePublicTemplates=true`);
    await ask("south", "PATCH", `/templates/${id}`, { isPublic: true });
    await seen(id);
    await ask("south", "DELETE", `/templates/${id}`);
    await refused("north", "NOT_FOUND", "GET", `/templates/${id}?includePublicTemplates=true`);
  });

  it("can be used by others, and then neither go nor turn private", async () => {
    const { id } = await template("south", { isPublic: true, imageName: "example.com/theirs:1", env: { THEIRS: "1" } });
    const user = await pod("north", { templateId: id, imageName: undefined });
    expect(user).toMatchObject({ templateId: id, image: "example.com/theirs:1", env: { THEIRS: "1" } });
    const bound = await endpoint("north", { templateId: id });
    expect(await ask("north", "GET", `/endpoints/${bound.id}?includeTemplate=true`)).toMatchObject({
      template: { id },
    });
    await refused("south", "IN_USE", "DELETE", `/templates/${id}`);
    await refused("south", "IN_USE", "PATCH", `/templates/${id}`, { isPublic: false });
    await seen(id);
    await ask("north", "DELETE", `/pods/${user.id}`);
    await refused("south", "IN_USE", "DELETE", `/templates/${id}`);
    await ask("north", "DELETE", `/endpoints/${bound.id}`);
    await ask("south", "DELETE", `/templates/${id}`);
  });

  it("keeps in memory neither the account that may not take it back nor the one that shows it", async () => {
    const { id } = await template("south", { isPublic: true });
    const user = await pod("north", { templateId: id });
    await refused("south", "IN_USE", "PATCH", `/templates/${id}`, { isPublic: false });
    await ask("north", "GET", `/pods/${user.id}?includeTemplate=true`);
    await evictDurableObject(env.ACCOUNT.getByName("south"));
    await evictDurableObject(env.ACCOUNT.getByName("north"));
  });

  it("earns by what others run with it, never by its owner's own use, and counts a report once", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2040, 0, 1, 10) });
    const { id } = await template("south", { isPublic: true });
    const { id: user } = await pod("north", { templateId: id, gpuTypeIds: ["NVIDIA B200"] });
    await pod("south", { templateId: id, gpuTypeIds: ["NVIDIA H200"] });
    vi.setSystemTime(Date.UTC(2040, 0, 1, 14));
    await ask("north", "POST", `/pods/${user}/stop`);
    for (const minute of [1, 2]) {
      vi.setSystemTime(Date.UTC(2040, 0, 1, 14, minute));
      await ask("north", "POST", `/pods/${user}/start`);
      await ask("north", "POST", `/pods/${user}/stop`);
      await runDurableObjectAlarm(env.ACCOUNT.getByName("north"));
    }
    // Four hours of a B200 at 5.98 USD, of which one in a hundred.
    const earned = { earned: 0.2392, runtimeInMin: 240 };
    expect(await ask("south", "GET", `/templates/${id}`)).toMatchObject(earned);
    await runDurableObjectAlarm(env.ACCOUNT.getByName("south"));
    expect(await seen(id)).toMatchObject(earned);
  });
});
