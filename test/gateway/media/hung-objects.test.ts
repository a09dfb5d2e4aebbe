// An object that takes a call and never answers holds nobody: comfort is gone without, and what is needed answers 503.
import { afterEach, beforeEach, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { detoured, gatedWorld, hang, model, Studio, type World, whileTimePasses } from "./studio.ts";

let world: World;
let land: () => void;
let studio: Studio;
let token: string;
beforeEach(async () => {
  ({ world, land } = gatedWorld());
  studio = new Studio();
  token = await studio.token("ada");
});
afterEach(emptyStorage);

const everyCall = new Proxy({}, { get: () => hang });
const hung = {
  JOB_MEDIA: { JOB_MEDIA: { getByName: () => everyCall } },
  SHARED_REQUEST: { SHARED_REQUEST: { getByName: () => everyCall } },
};
const unknowingKv = { IMAGES: { get: async () => null, put: async () => {} } };

async function expectSoon(response: Response, code: Parameters<typeof expectProblem>[1]): Promise<void> {
  expect(response.headers.get("Retry-After")).toBe("1");
  await expectProblem(response, code);
}

it("fault M8: a picture whose link KV does not know is asked for again later", async () => {
  land();
  const { path } = await studio.link(token);
  const blind = new Studio({ ...unknowingKv, ...hung.JOB_MEDIA });
  await expectSoon(await whileTimePasses(() => blind.ask(path, undefined)), "UNAVAILABLE");
});

it("fault M8: so is an answer from the cache", async () => {
  land();
  await studio.link(token);
  const { id } = await (await studio.paint(token, { operation: "run" })).json<{ id: string }>();
  expect(id).toMatch(/^cached-/);
  const blind = new Studio({ ...unknowingKv, ...hung.JOB_MEDIA });
  const status = () => blind.ask(`/v2/${model}/status/${id}`, token);
  await expectSoon(await whileTimePasses(status), "UNAVAILABLE");
});

it("fault M8: so is a deletion, and the link stays as it was", async () => {
  land();
  const { path } = await studio.link(token);
  const blind = new Studio(hung.JOB_MEDIA);
  await expectSoon(await whileTimePasses(() => blind.ask(path, token, "DELETE")), "UNAVAILABLE");
  expect((await blind.ask(path, undefined)).status).toBe(200);
  expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
});

it.each([
  ["JOB_MEDIA", "sharing"],
  ["SHARED_REQUEST", "leave"],
] as const)("fault M8: so is a cancel where %s hangs", async (binding, method) => {
  world.submitted = () => ({ status: "IN_QUEUE" });
  const { id } = await (await studio.paint(token, { operation: "run" })).json<{ id: string }>();
  const blind = new Studio(detoured(binding, { [method]: hang }));
  const cancel = () => blind.ask(`/v2/${model}/cancel/${id}`, token, "POST");
  await expectSoon(await whileTimePasses(cancel), "METER_UNAVAILABLE");
  expect(world.count("/cancel")).toBe(0);
});

it("fault: objects that are slow one after the other hold a cancel no longer than one that hangs", async () => {
  world.submitted = () => ({ status: "IN_QUEUE" });
  const { id } = await (await studio.paint(token, { operation: "run" })).json<{ id: string }>();
  await studio.paint(token, { operation: "run" });
  const slowly = async (call: () => Promise<unknown>) => {
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    return call();
  };
  const slow = { ...detoured("JOB_MEDIA", { sharing: slowly }), ...detoured("SHARED_REQUEST", { leave: slowly }) };
  const cancel = () => new Studio(slow).ask(`/v2/${model}/cancel/${id}`, token, "POST");
  await expectSoon(await whileTimePasses(cancel), "METER_UNAVAILABLE");
  expect(world.count("/cancel")).toBe(0);
});

it("fault M8: a status goes without a link of ours", async () => {
  const { id } = await (await studio.paint(token, { operation: "run" })).json<{ id: string }>();
  const blind = new Studio(hung.JOB_MEDIA);
  const response = await whileTimePasses(() => blind.ask(`/v2/${model}/status/${id}`, token));
  expect(await response.json()).toMatchObject({ output: { image_url: "https://cdn.example.net/a.png" } });
});

it("fault M8: a retry is the caller's own", async () => {
  world.submitted = () => ({ status: "FAILED", error: "out of paint" });
  const { id } = await (await studio.paint(token, { operation: "run" })).json<{ id: string }>();
  const blind = new Studio(hung.JOB_MEDIA);
  expect((await whileTimePasses(() => blind.ask(`/v2/${model}/retry/${id}`, token, "POST"))).status).toBe(200);
});

it("fault M8: a request goes alone where nobody says whether others ask the same", async () => {
  land();
  const blind = new Studio({ ...hung.SHARED_REQUEST, ...hung.JOB_MEDIA });
  const response = await whileTimePasses(() => blind.paint(token));
  expect([response.status, response.headers.get("X-Cache")]).toEqual([200, "MISS"]);
});

it("fault M8: who leads is answered though nobody can be told", async () => {
  const blind = new Studio({
    ...detoured("SHARED_REQUEST", { takeOff: hang }),
    ...detoured("JOB_MEDIA", { expect: hang }),
  });
  const response = await whileTimePasses(() => blind.paint(token, { operation: "run" }));
  expect([response.status, response.headers.get("X-Cache")]).toEqual([200, "MISS"]);
});
