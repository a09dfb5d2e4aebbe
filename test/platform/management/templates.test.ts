// Templates: their fields, their lists, what others see and keep of them.
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { officialTemplates } from "../../../src/platform/management/template.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ask, auth, endpoint, ids, type Json, pod, refused, send, template, valid } from "./management-client.ts";

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
    const [one, two] = [await template("north"), await template("north", { isServerless: true })];
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
    const [free, bound] = [
      await template("north", { isServerless: true }),
      await template("north", { isServerless: true }),
    ];
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

  it("can be used by others, who keep what it was when they named it", async () => {
    const first = { imageName: "example.com/theirs:1", env: { THEIRS: "1" } };
    const { id } = await template("south", { isPublic: true, ...first });
    const user = await pod("north", { templateId: id, imageName: undefined });
    expect(user).toMatchObject({ templateId: id, image: first.imageName, env: first.env });
    const { id: worker } = await template("south", { isPublic: true, isServerless: true, ...first });
    const bound = await endpoint("north", { templateId: worker });
    for (const of of [id, worker]) {
      await ask("south", "PATCH", `/templates/${of}`, { imageName: "example.com/theirs:2", env: { THEIRS: "2" } });
    }
    const kept = (of: string) => ({ env: first.env, template: { id: of, ...first } });
    expect(await ask("north", "GET", `/endpoints/${bound.id}?includeTemplate=true`)).toMatchObject(kept(worker));
    expect(await ask("north", "GET", `/pods/${user.id}?includeTemplate=true`)).toMatchObject(kept(id));
    expect(await ask("north", "PATCH", `/endpoints/${bound.id}`, { workersMax: 7 })).toMatchObject({ env: first.env });
    const renamed = await ask("north", "PATCH", `/endpoints/${bound.id}`, { templateId: worker });
    expect(renamed).toMatchObject({ env: { THEIRS: "2" } });
    expect(await ask("north", "GET", `/endpoints/${bound.id}?includeTemplate=true`)).toMatchObject({
      template: { id: worker, imageName: "example.com/theirs:2" },
    });
  });

  it.each([
    ["deleted", (id: string) => ask("south", "DELETE", `/templates/${id}`)],
    ["private", (id: string) => ask("south", "PATCH", `/templates/${id}`, { isPublic: false })],
  ])("once %s stays with those who use it, and nobody can name it any more", async (_, takeBack) => {
    const { id } = await template("south", { isPublic: true, imageName: "example.com/theirs:1", env: { THEIRS: "1" } });
    const user = await pod("north", { templateId: id });
    const theirs = { imageName: "example.com/theirs:1", env: { THEIRS: "1" } };
    const { id: workers } = await template("south", { isPublic: true, isServerless: true, ...theirs });
    const bound = await endpoint("north", { templateId: workers });
    await send("north", "GET", `/v2/${bound.id}/ping/w1`);
    for (const of of [id, workers]) await takeBack(of);
    await refused("north", "INVALID_REQUEST", "POST", "/pods", { templateId: id });
    await refused("north", "INVALID_REQUEST", "PATCH", `/endpoints/${bound.id}`, { templateId: workers });
    expect(await ask("north", "GET", `/pods/${user.id}?includeTemplate=true`)).toMatchObject({ template: { id } });
    expect(await ask("north", "PATCH", `/endpoints/${bound.id}`, { workersMax: 7 })).toMatchObject({
      env: { THEIRS: "1" },
    });
    const [worker] = await ask<Json[]>("north", "GET", `/pods?includeWorkers=true&endpointId=${bound.id}`);
    expect(worker).toMatchObject({ id: "w1", image: "example.com/theirs:1" });
    await ask("north", "PATCH", `/endpoints/${bound.id}`, {
      templateId: (await template("north", { isServerless: true })).id,
    });
    expect(await ask("north", "GET", `/endpoints/${bound.id}?includeTemplate=true`)).not.toMatchObject({
      template: { id: workers },
    });
  });

  it("earns nothing by what others run with it", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2040, 0, 1, 10) });
    const { id } = await template("south", { isPublic: true });
    const { id: user } = await pod("north", { templateId: id });
    vi.setSystemTime(Date.UTC(2040, 0, 1, 14));
    await ask("north", "POST", `/pods/${user}/stop`);
    for (const account of ["north", "south"]) await runDurableObjectAlarm(env.ACCOUNT.getByName(account));
    expect(await ask("south", "GET", `/templates/${id}`)).toMatchObject({ earned: 0, runtimeInMin: 0 });
  });

  it("keeps neither the account that shows it nor the one that has it in memory", async () => {
    const { id } = await template("south", { isPublic: true });
    const user = await pod("north", { templateId: id });
    await ask("north", "GET", `/pods/${user.id}?includeTemplate=true`);
    await evictDurableObject(env.ACCOUNT.getByName("south"));
    await evictDurableObject(env.ACCOUNT.getByName("north"));
  });
});

describe("a serverless template", () => {
  it("makes endpoints, and another one Pods; neither makes what is the other's", async () => {
    const [worker, machine] = [await template("north", { isServerless: true }), await template("north")];
    const made = await endpoint("north", { templateId: worker.id });
    await pod("north", { templateId: machine.id });
    const ofEndpoint = /^templateId: an endpoint takes a serverless template/;
    const attempts = [
      ["POST", "/endpoints", machine.id],
      ["PATCH", `/endpoints/${made.id}`, machine.id],
      ["POST", "/endpoints", "official-pytorch"],
    ] as const;
    for (const [method, path, templateId] of attempts) {
      expect(await refused("north", "INVALID_REQUEST", method, path, { templateId })).toMatch(ofEndpoint);
    }
    const ofPod = { imageName: "example.com/x:1", templateId: worker.id };
    expect(await refused("north", "INVALID_REQUEST", "POST", "/pods", ofPod)).toMatch(/^templateId: a Pod takes/);
    await endpoint("north", { templateId: "official-worker" });
  });
});
