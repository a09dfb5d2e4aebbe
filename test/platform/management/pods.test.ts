// Pods: how they are made, every filter, every cell of their state table, locks and resets.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { podMoves } from "../../../src/platform/management/pod.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ask, auth, endpoint, ids, type Json, pod, refused, send, template, volume } from "./management-client.ts";

const noon = Date.UTC(2040, 5, 1, 12);

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: noon }));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const list = (query = "") => ask<Json[]>("north", "GET", `/pods${query}`);
const at = (moment: number) => new Date(moment).toISOString();

describe("a Pod", () => {
  it("runs at once, at the price of what it is made of", async () => {
    const made = await pod("north", { gpuTypeIds: ["NVIDIA L4", "NVIDIA A40"], gpuCount: 2, name: "two" });
    expect(made).toMatchObject({
      desiredStatus: "RUNNING",
      name: "two",
      image: "example.com/pod:1",
      costPerHr: 0.86,
      adjustedCostPerHr: 0.86,
      containerDiskInGb: 50,
      volumeInGb: 20,
      volumeMountPath: "/workspace",
      ports: ["8888/http", "22/tcp"],
      gpu: { id: "NVIDIA L4", count: 2 },
      memoryInGb: 48,
      interruptible: false,
      locked: false,
      publicIp: null,
      lastStartedAt: at(noon),
      lastStatusChange: `Rented by user: ${at(noon)}`,
    });
    expect(await ask("north", "GET", `/pods/${made.id}`)).toEqual(made);
  });

  it.each([
    [{ cloudType: "COMMUNITY", gpuTypeIds: ["NVIDIA L40S"] }, 0.79],
    [{ interruptible: true, gpuTypeIds: ["NVIDIA L40S"] }, 0.43],
    [{ computeType: "CPU", cpuFlavorIds: ["cpu5m"], vcpuCount: 4 }, 0.26],
    [{}, 0.69],
  ])("made of %j costs %d USD an hour", async (more, costPerHr) => {
    expect((await pod("north", more))["costPerHr"]).toBe(costPerHr);
  });

  it("takes from its template what its own body does not say", async () => {
    const { id: containerRegistryAuthId } = await auth("north");
    const said = { imageName: "example.com/t:1", env: { A: "1", B: "1" }, dockerStartCmd: ["t"], volumeInGb: 5 };
    const { id: templateId } = await template("north", { ...said, containerRegistryAuthId, ports: ["1/tcp"] });
    const made = await ask("north", "POST", "/pods", { templateId, env: { B: "2" }, containerDiskInGb: null });
    expect(made).toMatchObject({
      templateId,
      containerRegistryAuthId,
      image: "example.com/t:1",
      env: { A: "1", B: "2" },
      dockerStartCmd: ["t"],
      volumeInGb: 5,
      containerDiskInGb: 50,
      ports: ["1/tcp"],
    });
  });

  it("comes with what is asked for, and says that no machine is rented", async () => {
    const { id: templateId } = await template("north");
    const { id: networkVolumeId } = await volume("north", { dataCenterId: "US-TX-1" });
    const { id } = await pod("north", { templateId, networkVolumeId });
    const all = "includeMachine=true&includeNetworkVolume=true&includeSavingsPlans=true&includeTemplate=true";
    const whole = {
      savingsPlans: [],
      template: { id: templateId },
      networkVolume: { id: networkVolumeId, dataCenterId: "US-TX-1" },
      machine: { dataCenterId: "US-TX-1", note: expect.stringMatching(/no machine is rented/) },
    };
    expect(await ask("north", "GET", `/pods/${id}?${all}`)).toMatchObject(whole);
    expect(await list(`?${all}`)).toMatchObject([whole]);
    const [plain] = await list();
    for (const name of Object.keys(whole)) expect(plain).not.toHaveProperty(name);
  });

  it("is gone once deleted, but for the list of those that are", async () => {
    const { id: networkVolumeId } = await volume("north");
    const { id } = await pod("north", { networkVolumeId });
    await ask("north", "DELETE", `/pods/${id}`);
    await refused("north", "NOT_FOUND", "GET", `/pods/${id}`);
    expect(await list()).toEqual([]);
    const [gone] = await list("?desiredStatus=TERMINATED");
    expect(gone).toMatchObject({
      id,
      desiredStatus: "TERMINATED",
      lastStatusChange: `Terminated by user: ${at(noon)}`,
    });
    expect(gone).not.toHaveProperty("networkVolumeId");
    await ask("north", "DELETE", `/networkvolumes/${networkVolumeId}`);
  });
});

describe("the list of Pods", () => {
  it("is narrowed by every filter, and by several at once", async () => {
    const { id: templateId } = await template("north");
    const { id: networkVolumeId } = await volume("north", { dataCenterId: "EU-CZ-1" });
    const plain = await pod("north");
    const chosen = await pod("north", {
      name: "chosen",
      imageName: "example.com/chosen:1",
      templateId,
      networkVolumeId,
      gpuTypeIds: ["NVIDIA A40"],
    });
    const cpu = await pod("north", { computeType: "CPU", cpuFlavorIds: ["cpu3g"], dataCenterIds: ["US-KS-2"] });
    await ask("north", "POST", `/pods/${chosen.id}/stop`);
    const cases: [string, Json[]][] = [
      ["", [plain, chosen, cpu]],
      ["computeType=CPU", [cpu]],
      ["computeType=GPU", [plain, chosen]],
      ["cpuFlavorId=cpu3g&cpuFlavorId=cpu5m", [cpu]],
      ["dataCenterId=EU-CZ-1,US-KS-2", [chosen, cpu]],
      ["desiredStatus=EXITED", [chosen]],
      ["desiredStatus=RUNNING", [plain, cpu]],
      ["endpointId=unknown", []],
      ["gpuTypeId=NVIDIA%20A40", [chosen]],
      ["gpuTypeId=NVIDIA%20A40&gpuTypeId=NVIDIA%20GeForce%20RTX%204090", [plain, chosen]],
      [`id=${cpu.id}`, [cpu]],
      ["imageName=example.com%2Fchosen%3A1", [chosen]],
      ["name=chosen", [chosen]],
      [`networkVolumeId=${networkVolumeId}`, [chosen]],
      [`templateId=${templateId}`, [chosen]],
      [`templateId=${templateId}&desiredStatus=RUNNING`, []],
      [`name=chosen&computeType=GPU&dataCenterId=EU-CZ-1&gpuTypeId=NVIDIA%20A40`, [chosen]],
    ];
    for (const [query, expected] of cases) expect(ids(await list(`?${query}`)), query).toEqual(ids(expected));
  });

  it("shows the workers of endpoints as Pods where it is asked to", async () => {
    const [one, other] = [await endpoint("north"), await endpoint("north")];
    for (const [{ id }, worker] of [
      [one, "w-one"],
      [other, "w-other"],
    ] as const) {
      await send("north", "GET", `/v2/${id}/ping/${worker}`);
    }
    const own = await pod("north");
    expect(ids(await list())).toEqual([own.id]);
    expect(ids(await list("?includeWorkers=true"))).toEqual([own.id, "w-one", "w-other"].sort());
    const [worker] = await list(`?includeWorkers=true&endpointId=${one.id}`);
    expect(worker).toMatchObject({ id: "w-one", endpointId: one.id, desiredStatus: "RUNNING" });
    expect(await ask("north", "GET", "/pods/w-other?includeWorkers=true")).toMatchObject({ endpointId: other.id });
    await refused("north", "NOT_FOUND", "GET", "/pods/w-other");
  });
});

type State = "RUNNING" | "EXITED" | "TERMINATED";
const later = noon + 60_000;
/** What each cell answers, told apart from the table that the code has. */
const cells: Record<State, Record<string, [State | "refused" | "absent", string?]>> = {
  RUNNING: {
    start: ["RUNNING"],
    stop: ["EXITED", "Exited"],
    restart: ["RUNNING", "Restarted"],
    reset: ["RUNNING", "Reset"],
    terminate: ["TERMINATED", "Terminated"],
  },
  EXITED: {
    start: ["RUNNING", "Resumed"],
    stop: ["EXITED"],
    restart: ["refused"],
    reset: ["EXITED", "Reset"],
    terminate: ["TERMINATED", "Terminated"],
  },
  TERMINATED: { start: ["absent"], stop: ["absent"], restart: ["absent"], reset: ["absent"], terminate: ["absent"] },
};

describe("the state table", () => {
  const each = Object.entries(cells).flatMap(([state, row]) =>
    Object.entries(row).map(([event, [to, word]]) => [state as State, event, to, word] as const),
  );

  it("has no cell that is not walked here", () => {
    const known = Object.entries(podMoves).flatMap(([state, row]) =>
      Object.keys(row).map((event) => `${state} ${event}`),
    );
    expect(known.filter((cell) => !each.some(([state, event]) => `${state} ${event}` === cell))).toEqual([]);
  });

  it.each(each)("%s, %s: %s", async (state, event, to, word) => {
    const before = await pod("north");
    if (state === "EXITED") await ask("north", "POST", `/pods/${before.id}/stop`);
    if (state === "TERMINATED") await ask("north", "DELETE", `/pods/${before.id}`);
    vi.setSystemTime(later);
    const [method, path] = event === "terminate" ? ["DELETE", ""] : ["POST", `/${event}`];
    if (to === "refused" || to === "absent") {
      await refused("north", to === "absent" ? "NOT_FOUND" : "WRONG_STATE", method, `/pods/${before.id}${path}`);
      return;
    }
    await ask("north", method, `/pods/${before.id}${path}`);
    const [after] = await list(`?id=${before.id}&desiredStatus=${to}`);
    const starts = word !== undefined && to === "RUNNING";
    const told = word ?? (state === "EXITED" ? "Exited" : "Rented");
    expect(after).toMatchObject({
      desiredStatus: to,
      lastStatusChange: `${told} by user: ${at(word === undefined ? noon : later)}`,
      lastStartedAt: at(starts ? later : noon),
    });
  });
});

describe("a locked Pod", () => {
  const locked = async () => (await pod("north", { locked: true })).id;

  it.each(["stop", "reset"])("refuses to %s until it is unlocked", async (action) => {
    const id = await locked();
    await refused("north", "LOCKED", "POST", `/pods/${id}/${action}`);
    expect(await ask("north", "GET", `/pods/${id}`)).toMatchObject({ desiredStatus: "RUNNING" });
    await ask("north", "PATCH", `/pods/${id}`, { locked: false });
    await ask("north", "POST", `/pods/${id}/${action}`);
  });

  it("refuses a change that would reset it, unless that unlocks it, and takes any other", async () => {
    const id = await locked();
    await refused("north", "LOCKED", "PATCH", `/pods/${id}`, { imageName: "example.com/other:1" });
    await ask("north", "PATCH", `/pods/${id}`, { name: "renamed" });
    await ask("north", "PATCH", `/pods/${id}`, { imageName: "example.com/other:1", locked: false });
  });

  it("can be restarted and deleted", async () => {
    const id = await locked();
    await ask("north", "POST", `/pods/${id}/restart`);
    await ask("north", "DELETE", `/pods/${id}`);
  });
});

describe("a change", () => {
  const changes = [
    ...[{ containerDiskInGb: 60 }, { dockerEntrypoint: ["x"] }, { dockerStartCmd: ["x"] }, { env: { X: "1" } }],
    ...[{ globalNetworking: true }, { imageName: "example.com/x:1" }, { ports: ["1/tcp"] }, { volumeInGb: 60 }],
    { volumeMountPath: "/x" },
  ];

  it.each(changes)("to %j resets the Pod", async (change) => {
    const { id } = await pod("north");
    vi.setSystemTime(later);
    const { imageName: image, ...others } = { imageName: "example.com/pod:1", ...change };
    const after = await ask("north", "PATCH", `/pods/${id}`, change);
    expect(after).toMatchObject({ ...others, image, lastStatusChange: `Reset by user: ${at(later)}` });
    expect(await ask("north", "GET", `/pods/${id}`)).toEqual(after);
  });

  it.each([{ name: "x" }, { locked: true }, { imageName: "example.com/pod:1" }, { containerDiskInGb: null }, {}])(
    "to %j does not",
    async (change) => {
      const { id } = await pod("north");
      vi.setSystemTime(later);
      const { imageName: _, containerDiskInGb: __, ...others } = change as Record<string, unknown>;
      const after = await ask("north", "POST", `/pods/${id}/update`, change);
      expect(after).toMatchObject({ ...others, lastStatusChange: `Rented by user: ${at(noon)}` });
    },
  );
});
