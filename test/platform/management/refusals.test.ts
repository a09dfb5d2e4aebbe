// What bad input gets: each case begins with a valid request and changes one thing.
import { afterEach, describe, expect, it } from "vitest";
import { cpuFlavorIds, gpuTypeIds } from "../../../src/platform/management/prices.ts";
import { dataCenterIds } from "../../../src/platform/management/vocabulary.ts";
import * as callers from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { testSettings } from "../../support/settings.ts";
import { ask, auth, endpoint, pod, refused, send, template, valid, volume } from "./management-client.ts";

afterEach(emptyStorage);

const unknown = "abcdefghij1234";
const invalid = "no%20id";
const long = "x".repeat(192);

const collections = ["/templates", "/endpoints", "/pods", "/networkvolumes", "/containerregistryauth"];
const single: [string, string, object?][] = collections.flatMap((path) => {
  const changes: [string, string, object?][] =
    path === "/containerregistryauth"
      ? []
      : [
          ["PATCH", `${path}/ID`, {}],
          ["POST", `${path}/ID/update`, {}],
        ];
  return [["GET", `${path}/ID`], ["DELETE", `${path}/ID`], ...changes];
});
const actions = ["start", "stop", "restart", "reset"].map((action): [string, string] => ["POST", `/pods/ID/${action}`]);
const byId = [...single, ...actions];

describe("an id", () => {
  it.each(byId)("%s %s that nobody knows is 404", async (method, path, body) => {
    await refused("north", "NOT_FOUND", method, path.replace("ID", unknown), body);
  });

  it.each(byId)("%s %s that cannot be one is 400", async (method, path, body) => {
    const message = await refused("north", "INVALID_REQUEST", method, path.replace("ID", invalid), body);
    expect(message).toMatch(/^\w+Id: expected an id/);
  });
});

describe("a key", () => {
  const everything = [...collections, "/billing/pods", "/billing/endpoints", "/billing/networkvolumes", "/unknown"];

  it.each(everything)("is needed for %s", async (path) => {
    await refused(undefined, "UNAUTHORIZED", "GET", path);
    const wrong = await send("north", "GET", `/v1${path}`);
    expect(wrong.status).not.toBe(401);
  });

  it.each(byId)("is needed before %s %s says anything", async (method, path, body) => {
    await refused(undefined, "UNAUTHORIZED", method, path.replace("ID", invalid), body);
  });
});

describe("an account that cannot be reached", () => {
  const gone = new Proxy({}, { get: () => () => Promise.reject(new Error("overloaded")) });
  const away = callers.isolate({ ACCOUNT: { getByName: () => gone } });
  const key = testSettings.PLATFORM_API_KEY;
  const everything: [string, string, object?][] = [
    ...collections.map((path): [string, string] => ["GET", path]),
    ...byId,
    ["POST", "/templates", valid.template],
    ["POST", "/networkvolumes", valid.volume],
    ["POST", "/containerregistryauth", valid.auth],
    ["POST", "/pods", { imageName: "example.com/pod:1" }],
    ["POST", "/endpoints", { templateId: unknown }],
    ["GET", "/billing/pods"],
  ];

  it.each(everything)("is 503 of %s %s, and says when to come back", async (method, path, body) => {
    const at = path.replace("ID", unknown);
    const response = await callers.send(away, method, `/platform/v1${at}`, { key, body });
    expect([response.status, response.headers.get("Retry-After")]).toEqual([503, "1"]);
    expect(await response.json()).toMatchObject({ code: "UNAVAILABLE", message: expect.stringMatching(/account/) });
  });

  it("is 503 of a job of an endpoint that only it knows", async () => {
    const response = await callers.send(away, "GET", `/platform/v2/${unknown}/health`, { key });
    expect(await callers.refusalOf(response)).toMatchObject({ status: 503, code: "UNAVAILABLE" });
  });
});

describe("a body", () => {
  const creates: [string, object, string, unknown][] = [
    ["/templates", valid.template, "name", undefined],
    ["/templates", valid.template, "name", "   "],
    ["/templates", valid.template, "name", long],
    ["/templates", valid.template, "name", 7],
    ["/templates", valid.template, "imageName", undefined],
    ["/templates", valid.template, "imageName", ""],
    ["/templates", valid.template, "category", "INTEL"],
    ["/templates", valid.template, "containerDiskInGb", -1],
    ["/templates", valid.template, "containerDiskInGb", 1.5],
    ["/templates", valid.template, "volumeInGb", "20"],
    ["/templates", valid.template, "volumeMountPath", "workspace"],
    ["/templates", valid.template, "dockerStartCmd", "serve"],
    ["/templates", valid.template, "dockerEntrypoint", [1]],
    ["/templates", valid.template, "env", { PORT: 80 }],
    ["/templates", valid.template, "env", ["A=1"]],
    ["/templates", valid.template, "ports", ["80"]],
    ["/templates", valid.template, "ports", ["0/tcp"]],
    ["/templates", valid.template, "ports", ["65536/tcp"]],
    ["/templates", valid.template, "ports", ["80/udp"]],
    ["/templates", valid.template, "ports", "80/http"],
    ["/templates", valid.template, "isPublic", "yes"],
    ["/templates", valid.template, "isServerless", 1],
    ["/templates", valid.template, "readme", null],
    ["/templates", valid.template, "containerRegistryAuthId", "not an id"],
    ["/templates", valid.template, "containerRegistryAuthId", unknown],
    ["/networkvolumes", valid.volume, "name", undefined],
    ["/networkvolumes", valid.volume, "size", undefined],
    ["/networkvolumes", valid.volume, "size", -1],
    ["/networkvolumes", valid.volume, "size", 4001],
    ["/networkvolumes", valid.volume, "size", 1.5],
    ["/networkvolumes", valid.volume, "dataCenterId", undefined],
    ["/networkvolumes", valid.volume, "dataCenterId", "somewhere nice"],
    ["/containerregistryauth", valid.auth, "name", undefined],
    ["/containerregistryauth", valid.auth, "username", undefined],
    ["/containerregistryauth", valid.auth, "password", undefined],
    ["/containerregistryauth", valid.auth, "password", ""],
  ];

  it.each(creates)("POST %s with %j, but %s: %j", async (path, body, name, value) => {
    const message = await refused("north", "INVALID_REQUEST", "POST", path, { ...body, [name]: value });
    expect(message).toMatch(new RegExp(`^${name}`));
    await ask("north", "POST", path, body);
  });

  const large: [string, unknown][] = [
    ["env", { A: "x".repeat(40_000), B: "x".repeat(40_000) }],
    ["dockerEntrypoint", Array(3).fill("x".repeat(30_000))],
    ["dockerStartCmd", Array(3).fill("x".repeat(30_000))],
    ["ports", Array(1001).fill("80/http")],
  ];

  it("attack: with a field that would make a record as large as a body is refused", async () => {
    for (const path of ["/templates", "/pods"]) {
      const made = await ask("north", "POST", path, valid.template);
      for (const [name, value] of large) {
        const body = { ...valid.template, name: "large", [name]: value };
        expect(await refused("north", "INVALID_REQUEST", "POST", path, body)).toMatch(new RegExp(`^${name}: `));
        await refused("north", "INVALID_REQUEST", "PATCH", `${path}/${made.id}`, { [name]: value });
      }
    }
  });

  const forEndpoints: [string, unknown][] = [
    ["templateId", undefined],
    ["templateId", unknown],
    ["templateId", "not an id"],
    ["computeType", "TPU"],
    ["cpuFlavorIds", ["cpu9"]],
    ["cpuFlavorIds", []],
    ["dataCenterIds", ["MOON-1"]],
    ["dataCenterIds", []],
    ["executionTimeoutMs", 4999],
    ["executionTimeoutMs", 7 * 24 * 3_600_000 + 1],
    ["gpuCount", 0],
    ["gpuTypeIds", ["abacus"]],
    ["gpuTypeIds", []],
    ["idleTimeout", 0],
    ["idleTimeout", 3601],
    ["minCudaVersion", "1.0"],
    ["allowedCudaVersions", ["1.0"]],
    ["name", ""],
    ["name", long],
    ["networkVolumeId", unknown],
    ["networkVolumeIds", [unknown]],
    ["scalerType", "MAGIC"],
    ["scalerValue", 0],
    ["vcpuCount", 0],
    ["workersMax", -1],
    ["workersMax", 1001],
    ["workersMin", -1],
    ["workersMin", 4],
    ["flashboot", "on"],
  ];

  it("POST and PATCH /endpoints, with one field wrong", async () => {
    const { id: templateId } = await template("north", { isServerless: true });
    const made = await endpoint("north", { templateId });
    for (const [name, value] of forEndpoints) {
      const path = new RegExp(`^${name === "networkVolumeId" ? "networkVolumeIds" : name}`);
      expect(await refused("north", "INVALID_REQUEST", "POST", "/endpoints", { templateId, [name]: value })).toMatch(
        path,
      );
      if (value === undefined || name === "computeType") continue;
      const change = { [name]: value };
      expect(await refused("north", "INVALID_REQUEST", "PATCH", `/endpoints/${made.id}`, change), name).toMatch(path);
    }
    expect(await ask("north", "GET", `/endpoints/${made.id}`)).toEqual(made);
    await ask("north", "POST", "/endpoints", { templateId });
  });

  const forPods: [string, unknown][] = [
    ["imageName", undefined],
    ["cloudType", "FOGGY"],
    ["computeType", "TPU"],
    ["containerDiskInGb", -1],
    ["containerRegistryAuthId", unknown],
    ["cpuFlavorIds", ["cpu9"]],
    ["dataCenterIds", ["MOON-1"]],
    ["env", { A: null }],
    ["gpuCount", 0],
    ["gpuTypeIds", ["abacus"]],
    ["gpuTypePriority", "luck"],
    ["interruptible", "no"],
    ["locked", 1],
    ["minRAMPerGPU", -1],
    ["name", long],
    ["networkVolumeId", unknown],
    ["ports", ["x/http"]],
    ["templateId", unknown],
    ["vcpuCount", 0],
    ["volumeInGb", "1"],
    ["volumeMountPath", "x"],
  ];

  it("POST and PATCH /pods, with one field wrong", async () => {
    const made = await pod("north");
    const body = { imageName: "example.com/pod:1" };
    const changeable = ["containerDiskInGb", "containerRegistryAuthId", "env", "locked", "name", "ports", "volumeInGb"];
    for (const [name, value] of forPods) {
      const path = new RegExp(`^${name}`);
      expect(await refused("north", "INVALID_REQUEST", "POST", "/pods", { ...body, [name]: value })).toMatch(path);
      if (!changeable.includes(name)) continue;
      expect(await refused("north", "INVALID_REQUEST", "PATCH", `/pods/${made.id}`, { [name]: value })).toMatch(path);
    }
    expect(await ask("north", "GET", `/pods/${made.id}`)).toEqual(made);
    await ask("north", "POST", "/pods", body);
  });

  it("tells every fault with its path", async () => {
    const body = { name: 1, imageName: "", env: { A: 1 }, ports: ["80/http", "x"] };
    const message = await refused("north", "INVALID_REQUEST", "POST", "/templates", body);
    expect(message.split("; ").map((fault) => fault.split(":")[0])).toEqual(["name", "imageName", "env.A", "ports.1"]);
  });

  it.each(["", "{", "[]", "null", '"text"'])("that is no object, such as %j, is refused", async (body) => {
    const code = body === "" || body === "{" ? "INVALID_JSON" : "INVALID_REQUEST";
    await refused("north", code, "POST", "/templates", body);
  });

  it("larger than a mebibyte is refused", async () => {
    const padding = "x".repeat(1024 * 1024);
    await refused("north", "PAYLOAD_TOO_LARGE", "POST", "/templates", { ...valid.template, unknown: padding });
    await ask("north", "POST", "/templates", { ...valid.template, unknown: padding.slice(1000) });
  });
});

describe("a name", () => {
  it("is given once in an account, to templates", async () => {
    const [one, two] = [await template("north"), await template("north")];
    const again = { ...valid.template, name: one["name"] };
    expect(await refused("north", "NAME_TAKEN", "POST", "/templates", again)).toMatch(/^name: /);
    await refused("north", "NAME_TAKEN", "PATCH", `/templates/${two.id}`, { name: one["name"] });
    await ask("south", "POST", "/templates", again);
  });
});

describe("a query", () => {
  const cases: [string, string, string][] = [
    ["/templates", "includePublicTemplates", "maybe"],
    ["/templates", "includeRunpodTemplates", ""],
    ["/endpoints", "includeWorkers", "1"],
    ["/pods", "computeType", "TPU"],
    ["/pods", "desiredStatus", "ASLEEP"],
    ["/pods", "includeMachine", "yes"],
    ["/pods", "name", long],
  ];
  it.each(cases)("GET %s?%s=%s is refused", async (path, name, value) => {
    const message = await refused("north", "INVALID_REQUEST", "GET", `${path}?${name}=${value}`);
    expect(message).toMatch(new RegExp(`^${name}: `));
    await ask("north", "GET", path);
  });
});

describe("attack: a list of words", () => {
  const many = (word: string, count: number) => Array<string>(count).fill(word).join(",");
  const different = (count: number) => Array.from({ length: count }, (_, n) => `a${n}`).join(",");

  it.each([
    `/pods?gpuTypeId=${many("a", 101)}`,
    `/pods?gpuTypeId=${gpuTypeIds.join(",")}&dataCenterId=${dataCenterIds.join(",")}&cpuFlavorId=${cpuFlavorIds.join(",")}`,
    `/billing/endpoints?dataCenterId=${many("EU-RO-1", 120)}`,
    `/billing/endpoints?gpuTypeId=${gpuTypeIds.join(",")}&dataCenterId=${dataCenterIds.join(",")}`,
  ])("of a query may say a word as often as it likes, and every word (%#)", async (path) => {
    const all =
      "id=a&name=a&networkVolumeId=a&templateId=a&imageName=a&desiredStatus=RUNNING&computeType=GPU&endpointId=a";
    const more = path.startsWith("/pods") ? all.replace("&endpointId=a", "") : "endpointId=a&imageName=a&templateId=a";
    expect(await ask("north", "GET", `${path}&${more}`)).toEqual([]);
  });

  it.each(["gpuTypeId", "dataCenterId", "cpuFlavorId"])(
    "of a query may not say more words than there are: %s",
    async (name) => {
      const message = await refused("north", "INVALID_REQUEST", "GET", `/pods?${name}=${different(101)}`);
      expect(message).toMatch(new RegExp(`^${name}: `));
    },
  );

  it("of a body counts each word once, in its order", async () => {
    const long = (first: string, word: string) => [first, ...Array<string>(20_000).fill(word)];
    const said = {
      cpuFlavorIds: long("cpu3g", "cpu3c"),
      gpuTypeIds: long("NVIDIA A40", "NVIDIA L4"),
      dataCenterIds: long("US-TX-1", "EU-RO-1"),
      allowedCudaVersions: long("12.1", "12.4"),
    };
    const meant = Object.fromEntries(Object.entries(said).map(([name, words]) => [name, words.slice(0, 2)]));
    const { cpuFlavorIds: _, ...ofGpus } = meant;
    const made = await endpoint("north", said);
    expect(made).toMatchObject(ofGpus);
    expect(await ask("north", "PATCH", `/endpoints/${made.id}`, said)).toMatchObject(meant);
    await pod("north", said);
  });
});

describe("a route", () => {
  it("that is not there is 404, another method 405", async () => {
    await refused("north", "NOT_FOUND", "GET", "/nothing");
    await refused("north", "METHOD_NOT_ALLOWED", "PUT", "/templates");
    await refused("north", "METHOD_NOT_ALLOWED", "PATCH", "/containerregistryauth/abc");
  });
});

describe("an account", () => {
  it("sees, changes and refers to nothing of another", async () => {
    const theirs = {
      templates: await template("south"),
      endpoints: await endpoint("south"),
      pods: await pod("south"),
      networkvolumes: await volume("south"),
      containerregistryauth: await auth("south"),
    };
    for (const [path, { id }] of Object.entries(theirs)) {
      expect(await ask<unknown>("north", "GET", `/${path}`)).toEqual([]);
      await refused("north", "NOT_FOUND", "GET", `/${path}/${id}`);
      await refused("north", "NOT_FOUND", "DELETE", `/${path}/${id}`);
      if (path !== "containerregistryauth")
        await refused("north", "NOT_FOUND", "PATCH", `/${path}/${id}`, { name: "x" });
    }
    await refused("north", "NOT_FOUND", "POST", `/pods/${theirs.pods.id}/stop`);
    const image = { imageName: "example.com/pod:1" };
    const references: [string, object][] = [
      ["/pods", { ...image, templateId: theirs.templates.id }],
      ["/pods", { ...image, networkVolumeId: theirs.networkvolumes.id }],
      ["/pods", { ...image, containerRegistryAuthId: theirs.containerregistryauth.id }],
      ["/endpoints", { templateId: theirs.templates.id }],
      ["/templates", { ...valid.template, containerRegistryAuthId: theirs.containerregistryauth.id }],
    ];
    for (const [path, body] of references) await refused("north", "INVALID_REQUEST", "POST", path, body);
    for (const of of ["pods", "endpoints", "networkvolumes"]) {
      expect(await ask<unknown>("north", "GET", `/billing/${of}`)).toEqual([]);
    }
  });
});
