// What a picture costs of the account, counted: the figures that docs/deploy-and-limits.md calculates a month with.
import { listDurableObjectIds, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it, vi } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";
import { FakeUpstream, json, model, watchCanary } from "./jobs/fake-upstream.ts";

watchCanary();
afterEach(emptyStorage);

const picture = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Array<number>(120).fill(7)]);
const gateway = "https://gateway.example.com";
const namespaces = ["USER_METER", "BUDGET", "CONTROL", "JOB_MEDIA", "SHARED_REQUEST"] as const;

const pages: Record<string, string> = import.meta.glob<string>("../../docs/deploy-and-limits.md", {
  query: "?raw",
  import: "default",
  eager: true,
});
const [page = ""] = Object.values(pages);
const [, bill = ""] = /<!-- bill -->([\s\S]*)<!-- end of bill -->/.exec(page) ?? [];
const lines = bill
  .trim()
  .split("\n")
  .map((line) =>
    line
      .split("|")
      .map((cell) => cell.trim())
      .slice(1, -1),
  );
const cellsOf = (what: string) => lines.find(([first]) => first === what) ?? [];
const numberOf = (text = "") => Number(text.replaceAll(",", ""));
/** The rows with a price. */
const billed = lines
  .filter(([, , , price = ""]) => /^[\d.]+$/.test(price))
  .map(([what = "", each, included, price, ...sums]) => {
    return { what, each: numberOf(each), included: numberOf(included), price: numberOf(price), sums };
  });

/** What each binding is asked, by the Worker and by the objects. */
async function countEverything() {
  const counts = { objects: 0, rowsRead: 0, rowsWritten: 0, kvReads: 0, kvWrites: 0 };
  const [sql, storage] = await runInDurableObject(env.CONTROL.getByName("control"), (_, state) => [
    Object.getPrototypeOf(state.storage.sql) as SqlStorage,
    Object.getPrototypeOf(state.storage) as DurableObjectStorage,
  ]);
  const kv = Object.getPrototypeOf(env.IMAGES) as KVNamespace;
  const [get, put] = [kv.get, kv.put];
  vi.spyOn(kv, "get").mockImplementation(function (this: KVNamespace, ...args: unknown[]) {
    counts.kvReads++;
    return Reflect.apply(get, this, args);
  } as never);
  vi.spyOn(kv, "put").mockImplementation(function (this: KVNamespace, ...args: unknown[]) {
    counts.kvWrites++;
    return Reflect.apply(put, this, args);
  } as never);
  const namespace = Object.getPrototypeOf(env.USER_METER) as DurableObjectNamespace;
  for (const way of ["get", "getByName"] as const) {
    const found = namespace[way] as (...args: unknown[]) => object;
    vi.spyOn(namespace, way).mockImplementation(function (this: DurableObjectNamespace, ...args: unknown[]) {
      return new Proxy(Reflect.apply(found, this, args) as Record<PropertyKey, unknown>, {
        get: (stub, name) => {
          const member = stub[name] as (...given: unknown[]) => unknown;
          if (typeof member !== "function" || name === "then") return member;
          return (...given: unknown[]) => {
            counts.objects++;
            return member(...given);
          };
        },
      });
    } as never);
  }
  const alarms = vi.spyOn(storage, "setAlarm");
  const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  const { exec } = sql;
  vi.spyOn(sql, "exec").mockImplementation(function (this: SqlStorage, ...args: unknown[]) {
    const cursor = Reflect.apply(exec, this, args);
    cursors.push(cursor);
    return cursor;
  } as never);
  return () => {
    for (const { rowsRead, rowsWritten } of cursors) {
      counts.rowsRead += rowsRead;
      counts.rowsWritten += rowsWritten;
    }
    cursors.length = 0;
    // Each is billed as a row written.
    return { ...counts, alarms: alarms.mock.calls.length };
  };
}

/** A service that makes a picture, and tells of its end. */
class PictureService extends FakeUpstream {
  #hook = "";
  #jobs = 0;
  #isDone = false;

  constructor(settings: object = {}) {
    super(() => json({}), { PUBLIC_URL: gateway, ...settings });
    this.answer = ({ path, body }) => {
      if (!path.includes("/v2/")) return new Response(picture, { headers: { "Content-Type": "image/png" } });
      if (path.endsWith("/run")) {
        this.#hook = JSON.parse(body).webhook;
        return json({ id: `job-${++this.#jobs}`, status: "IN_QUEUE" });
      }
      const id = path.split("/").at(-1) ?? "";
      const output = { image_url: `https://cdn.example.net/${id}.png`, cost: 0.0025 };
      const end = { status: "COMPLETED", output, delayTime: 1, executionTime: 1 };
      return json({ id, ...(this.#isDone ? end : { status: "IN_PROGRESS" }) });
    };
  }

  /** Five requests: a submit, a poll, the notice, another poll, the file. Answers the file's status. */
  async make(seed: number): Promise<number> {
    this.#isDone = false;
    const submitted = await this.submit("run", { input: { prompt: "a lighthouse", seed } });
    const { id } = await submitted.json<{ id: string }>();
    const poll = () => this.call("GET", `/v2/${model}/status/${id}`);
    await poll();
    this.#isDone = true;
    await this.call("POST", new URL(this.#hook).pathname, { body: { id: `job-${this.#jobs}`, status: "COMPLETED" } });
    const { output } = await (await poll()).json<{ output: { image_url: string } }>();
    expect(output.image_url).toMatch(/^https:\/\/gateway\.example\.com\/images\//);
    return (await this.call("GET", new URL(output.image_url).pathname)).status;
  }
}

// On a machine that is busy for a second an alarm rings by itself, and reads a row or two more.
it("is what the page says", { retry: 2 }, async () => {
  const service = new PictureService();
  // A payer who was here before, in an isolate that is awake.
  expect(await service.make(1)).toBe(200);
  await runAlarms();
  const counted = await countEverything();
  const before = counted();
  expect(await service.make(2)).toBe(200);
  const { alarms: alarmsBefore } = counted();
  await runAlarms();
  const { rowsRead, ...after } = counted();
  expect(before).toMatchObject({ objects: 0, rowsWritten: 0, kvWrites: 0 });
  // The meter, the job's links and the shared request each ring, and set the next alarm.
  const rings = 3;
  const asked = {
    "Worker requests": 5,
    "KV reads": after.kvReads,
    "KV writes": after.kvWrites,
    "Object requests": after.objects + rings,
    "Rows read": rowsRead,
    "Rows written": 2 * (after.rowsWritten + alarmsBefore + rings),
  };
  const said = new Map(billed.map(({ what, each }) => [what, each]));
  expect(asked).toEqual(Object.fromEntries(Object.keys(asked).map((what) => [what, said.get(what)])));
});

const pictures = [1e3, 1e5, 1e7];

it.each([["put"], ["get"], ["put", "get"]] as const)(
  "goes on where KV has had its day's share: %s",
  async (...ways) => {
    const kv = Object.getPrototypeOf(env.IMAGES) as KVNamespace;
    const spent = new Error("KV limit exceeded for the day.");
    for (const way of ways) vi.spyOn(kv, way).mockImplementation((() => Promise.reject(spent)) as never);
    expect(await new PictureService().make(3)).toBe(200);
  },
);

it("sums up as the page does", () => {
  const costs = billed.map(({ each, included, price }) =>
    pictures.map((count) => (Math.max(0, count * each - included) / 1e6) * price),
  );
  for (const [row, { what, sums }] of billed.entries()) {
    expect(sums.length, what).toBe(pictures.length);
    for (const [column, sum] of sums.entries()) expect(numberOf(sum), what).toBeCloseTo(costs[row]?.[column] ?? 0, 1);
  }
  const planUsd = 5;
  for (const [column, total] of cellsOf("**A month, USD**").slice(-pictures.length).entries()) {
    expect(numberOf(total)).toBeCloseTo(
      costs.reduce((sum, row) => sum + (row[column] ?? 0), planUsd),
      1,
    );
  }
});

const stubOf = (Object.getPrototypeOf(env.USER_METER) as DurableObjectNamespace).get;

async function runAlarms(): Promise<void> {
  for (const name of namespaces) {
    const namespace = env[name] as unknown as DurableObjectNamespace;
    for (const id of await listDurableObjectIds(namespace)) await runDurableObjectAlarm(stubOf.call(namespace, id));
  }
}
