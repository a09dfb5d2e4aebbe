// The objects of pictures end: alarms ring on objects that were built anew, over whatever is stored, and what is over leaves nothing.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { JobMedia } from "../../../src/gateway/media/job-media.ts";
import type { MediaEntry } from "../../../src/gateway/media/kept-links.ts";
import { mediaKeysOf } from "../../../src/gateway/media/media-key.ts";
import { SharedRequest } from "../../../src/gateway/media/shared-request.ts";
import { configOf } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { kept, Studio, World } from "./studio.ts";

const minutes = 60_000;
const days = 24 * 60 * minutes;
const name = "reuse/shared/0123456789abcdef";
const tag = "0123456789abcdef0123456789abcdef";
type Stub = DurableObjectStub<JobMedia> | DurableObjectStub<SharedRequest>;
/** Each test begins here: an object that is not rebuilt goes by the true clock. */
let started = 0;

let request: DurableObjectStub<SharedRequest>;
let job: DurableObjectStub<JobMedia>;
let link: MediaEntry;
beforeEach(() => {
  started = Date.now();
  request = env.SHARED_REQUEST.getByName(name);
  job = env.JOB_MEDIA.getByName(tag);
  const expiresAt = started + 7 * days;
  const key = mediaKeysOf(configOf()).mint(tag, "image_url", expiresAt);
  const url = "https://cdn.example.net/a.png";
  const facts = { model: "m", cost: 0.01, size: null, completedAt: started, owner: "user:ada", others: {} };
  link = { key, media: { url, field: "image_url", expiresAt, ...facts } };
});
afterEach(emptyStorage);

/** The object as another isolate builds it of what is stored, at that moment. */
async function rebuilt(stub: Stub, afterMs: number): Promise<void> {
  await evictDurableObject(stub);
  await runInDurableObject(stub, (object: JobMedia | SharedRequest) => {
    object.clock = () => started + afterMs;
  });
}

async function ring(stub: Stub, afterMs: number): Promise<void> {
  await rebuilt(stub, afterMs);
  expect(await runDurableObjectAlarm(stub)).toBe(true);
}

const stored = (stub: Stub) =>
  runInDurableObject(stub, async (_, { storage }) => ({
    tables: storage.sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'")
      .toArray()
      .map((table) => table.name),
    alarm: await storage.getAlarm(),
  }));
const nothing = { tables: [], alarm: null };
const rowsOf = (stub: Stub) =>
  runInDurableObject(stub, (_, { storage }) =>
    storage.sql
      .exec<{ name: string }>("SELECT name FROM kept ORDER BY name")
      .toArray()
      .map((row) => row.name),
  );
const sight = (status: string, media: readonly MediaEntry[] = []) => ({ admission: "a", ref: "r", status, media });

describe("a shared request", () => {
  it("that is under way is still joined after its alarm, and its riders get off one by one", async () => {
    expect(await request.board("a")).toEqual({ role: "lead" });
    await request.takeOff("a", "r", "{}");
    await request.board("b");
    await ring(request, 2 * minutes);
    expect(await request.board("c")).toEqual({ role: "join", leader: "a" });
    await ring(request, 20 * minutes);
    // Boarding is over, its riders are known all the same.
    expect(await request.board("d")).toEqual({ role: "lead" });
    expect(await request.leave("d")).toBe("nobody");
    expect([await request.leave("a"), await request.leave("b")]).toEqual(["others", "others"]);
    expect(await request.leave("a")).toBe("others");
    expect(await request.sharingOf("r")).toEqual({ request: "{}" });
    expect(await request.leave("c")).toBe("nobody");
    expect(await request.leave("c")).toBe("over");
    // What ended is known for as long as it may be retried.
    expect(await rowsOf(request)).toEqual(["ended/r"]);
    await ring(request, 51 * minutes);
    expect(await stored(request)).toEqual(nothing);
  });

  it("whose leader was lost is gone with its riders", async () => {
    await request.board("a");
    await request.board("b");
    await ring(request, 61_000);
    expect(await stored(request)).toEqual(nothing);
    expect(await request.board("c")).toEqual({ role: "lead" });
  });

  it("whose end nobody told is gone when its job must be", async () => {
    await request.board("a");
    await request.takeOff("a", "r", null);
    await ring(request, 2 * minutes);
    expect(await rowsOf(request)).toEqual(["flight/a", "rider/a/aboard/a"]);
    await ring(request, 2 * days);
    expect(await stored(request)).toEqual(nothing);
  });

  it("that was answered serves its answer for two minutes, and is gone", async () => {
    await request.board("a");
    await request.takeOff("a", "r", "{}");
    await request.board("b");
    await request.land("r", link);
    expect(await rowsOf(request)).toEqual(["ended/r", "fresh"]);
    await ring(request, 1.5 * minutes);
    expect(await request.board("c")).toMatchObject({ role: "served" });
    expect(await request.awaitRef("a", 0)).toBe("none");
    await ring(request, 3 * minutes);
    expect(await stored(request)).toEqual(nothing);
  });

  it("whose alarm is late tells nothing that is over", async () => {
    await request.board("a");
    await request.takeOff("a", "r", "{}");
    await request.land("r", link);
    await rebuilt(request, 3 * minutes);
    expect(await request.awaitRef("a", 0)).toBe("none");
    expect(await request.board("b")).toEqual({ role: "lead" });
  });

  it("that failed for several is held for a retry as long as the upstream holds the job", async () => {
    await request.board("a");
    await request.board("b");
    await request.takeOff("a", "r", "{}");
    await request.land("r", undefined);
    await ring(request, 29 * minutes);
    expect(await request.sharingOf("r")).toEqual({ request: "{}" });
    await ring(request, 31 * minutes);
    expect(await stored(request)).toEqual(nothing);
  });

  it("holds no more of what failed than it has room for", async () => {
    for (let job = 0; job < 20; job++) {
      await request.board(`a${job}`);
      await request.board(`b${job}`);
      await request.takeOff(`a${job}`, `r${job}`, "{}");
      await request.land(`r${job}`, undefined);
    }
    expect(await rowsOf(request)).toHaveLength(8);
  });

  it("knows of an end that was told before the beginning, in another isolate too", async () => {
    await request.board("a");
    await request.land("r", undefined);
    await rebuilt(request, 1000);
    await request.takeOff("a", "r", "{}");
    expect(await request.awaitRef("a", 0)).toEqual({ ref: "r" });
    expect(await request.board("b")).toEqual({ role: "lead" });
  });

  it("that was given up leaves nothing at once", async () => {
    await request.board("a");
    await request.ground("a", undefined);
    expect(await stored(request)).toEqual(nothing);
  });

  it("begins anew in the moment in which it ends", async () => {
    await request.board("a");
    await runInDurableObject(request, (object: SharedRequest) => {
      object.leave("a");
      object.board("b");
    });
    expect((await stored(request)).alarm).not.toBe(null);
    await rebuilt(request, 1000);
    expect(await request.board("c")).toEqual({ role: "join", leader: "b" });
  });

  it("forgets nobody among a thousand riders", async () => {
    await runInDurableObject(request, (object: SharedRequest) => {
      for (let rider = 0; rider < 1000; rider++) object.board(`a${rider}`);
      object.takeOff("a0", "r", null);
    });
    await ring(request, 2 * minutes);
    await runInDurableObject(request, (object: SharedRequest) => {
      for (let rider = 0; rider < 999; rider++) expect(object.leave(`a${rider}`)).toBe("others");
      expect(object.leave("a999")).toBe("nobody");
    });
    await ring(request, 33 * minutes);
    expect(await stored(request)).toEqual(nothing);
  });
});

describe("a job's media", () => {
  it("is written by the alarm where it was not before, and kept as it was first seen until its link ends", async () => {
    const put = vi.spyOn(Object.getPrototypeOf(env.IMAGES), "put").mockRejectedValue(new Error("busy"));
    await job.conclude(sight("COMPLETED", [link]));
    await ring(job, minutes);
    expect(await kept("media/")).toEqual([]);
    put.mockRestore();
    await ring(job, 2 * minutes);
    await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
    const later = { ...link, media: { ...link.media, expiresAt: link.media.expiresAt + days } };
    await rebuilt(job, 6 * days);
    await runInDurableObject(job, (object: JobMedia) => {
      expect(object.conclude(sight("COMPLETED", [later])).kept).toEqual([link]);
    });
    await ring(job, 20 * days);
    expect(await stored(job)).toEqual(nothing);
  });

  it("is tried ever more seldom while it cannot be written", async () => {
    vi.spyOn(Object.getPrototypeOf(env.IMAGES), "put").mockRejectedValue(new Error("full"));
    await job.conclude(sight("COMPLETED", [link]));
    let rings = 0;
    for (let at = 0; at < days; rings++) {
      await rebuilt(job, at);
      await runDurableObjectAlarm(job);
      at = ((await stored(job)).alarm ?? 0) - started;
    }
    expect(rings).toBeLessThan(60);
  });

  it("of a job that nobody shares, and that ended without any, is nothing", async () => {
    await job.conclude(sight("FAILED"));
    expect(await stored(job)).toEqual(nothing);
  });

  it("tells the others of an end once, and again where they could not be reached or a retry ends otherwise", async () => {
    const land = vi.spyOn(SharedRequest.prototype, "land");
    const away = { getByName: () => ({ land: () => Promise.reject(new Error("gone")) }) };
    await job.expect({ admission: "a", rider: "lead", flight: name, ref: "r" });
    await runInDurableObject(job, async (object: JobMedia) => {
      Reflect.set(object, "env", { ...env, SHARED_REQUEST: away });
      const warn = vi.spyOn(console, "warn").mockReturnValue();
      object.conclude(sight("FAILED"));
      await vi.waitFor(() => expect(warn).toHaveBeenCalledWith(expect.stringContaining("not told of its end")));
      Reflect.set(object, "env", env);
    });
    for (const [status, told, calls] of [
      ["FAILED", "FAILED", 1],
      ["FAILED", "FAILED", 1],
      ["COMPLETED", "COMPLETED", 2],
      ["COMPLETED", "COMPLETED", 2],
    ] as const) {
      await runInDurableObject(job, async (object: JobMedia, { storage }) => {
        object.conclude(sight(status, status === "COMPLETED" ? [link] : []));
        await vi.waitFor(() => {
          const { json } = storage.sql.exec<{ json: string }>("SELECT json FROM kept WHERE name = 'sharing'").one();
          expect([(JSON.parse(json) as { told?: string }).told, land.mock.calls.length]).toEqual([told, calls]);
        });
      });
    }
    expect(land.mock.calls.at(-1)).toMatchObject(["r", { key: link.key }]);
  });
});

/** As the versions before stored it, and as nobody ever did. */
const garbage: readonly (readonly [what: string, sql: readonly string[]])[] = [
  ["nothing", []],
  [
    "a flight, as the object that was both kept it",
    [
      "CREATE TABLE schema_version (version INTEGER NOT NULL)",
      "INSERT INTO schema_version VALUES (1)",
      "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL)",
      `INSERT INTO state VALUES (1, '{"flight":{"leader":"a","ref":null,"since":1,"riders":["a"]},"fresh":null,"landed":null}')`,
    ],
  ],
  [
    "a table of the same name with other columns",
    ["CREATE TABLE kept (id TEXT, until TEXT)", "INSERT INTO kept VALUES ('a', 'b')"],
  ],
  [
    "a later version's tables",
    ["CREATE TABLE schema_version (version INTEGER NOT NULL)", "INSERT INTO schema_version VALUES (9)"],
  ],
];
const table =
  "CREATE TABLE kept (name TEXT PRIMARY KEY, json TEXT NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID";
const everyRow = ["fresh", "flight/a", "rider/a/aboard/a", "ended/r", "links", "reserved", "sharing", "rider/a"];
const unreadable: readonly (readonly [what: string, json: string])[] = [
  ["no JSON", "{"],
  ["null", "null"],
  ["another shape", `{"kept":5,"media":[],"leader":{}}`],
  ["a text", `"a"`],
];

const objects: readonly (readonly [string, () => Stub, (object: JobMedia & SharedRequest) => void])[] = [
  ["a shared request", () => request, (object) => expect(object.board("a")).toEqual({ role: "lead" })],
  [
    "a job's media",
    () => job,
    (object) => expect(object.conclude(sight("COMPLETED", [link]))).toEqual({ kept: [link], rider: null }),
  ],
];

describe.each(objects)("the alarm of %s", (_name, find, use) => {
  let stub: Stub;
  beforeEach(() => {
    stub = find();
  });
  async function plant(sql: readonly string[]): Promise<void> {
    await runInDurableObject(stub, async (_, { storage }) => {
      for (const statement of sql) storage.sql.exec(statement);
      await storage.setAlarm(started + 10 * days);
    });
  }

  it.each(garbage)("over %s ends it, and nothing rings again", async (_what, sql) => {
    await plant(sql);
    await ring(stub, 0);
    expect(await stored(stub)).toEqual(nothing);
  });

  it.each(garbage)("is not needed for its use over %s", async (_what, sql) => {
    await plant(sql);
    await rebuilt(stub, 0);
    await runInDurableObject(stub, (object) => use(object as JobMedia & SharedRequest));
    expect((await stored(stub)).tables).toEqual(["schema_version", "kept"]);
    await ring(stub, 20 * days);
    expect(await stored(stub)).toEqual(nothing);
  });

  it.each(unreadable)("over rows that say %s ends them in their time", async (_what, json) => {
    await plant([table, ...everyRow.map((row) => `INSERT INTO kept VALUES ('${row}', '${json}', ${started + days})`)]);
    await ring(stub, 0);
    expect(await rowsOf(stub)).toHaveLength(everyRow.length);
    await runInDurableObject(stub, (object) => use(object as JobMedia & SharedRequest));
    await ring(stub, 20 * days);
    expect(await stored(stub)).toEqual(nothing);
  });
});

it("after a picture that two shared, all its objects are gone when its link is", async () => {
  new World();
  const studio = new Studio();
  const token = await studio.token("ada");
  const named: { jobs: string[]; requests: string[] } = { jobs: [], requests: [] };
  const watch = (namespace: { getByName: (name: string) => unknown }, names: string[]) => ({
    getByName: (name: string) => {
      names.push(name);
      return namespace.getByName(name);
    },
  });
  const watched = new Studio({
    JOB_MEDIA: watch(env.JOB_MEDIA, named.jobs),
    SHARED_REQUEST: watch(env.SHARED_REQUEST, named.requests),
  });
  for (let times = 0; times < 2; times++) expect((await watched.paint(token)).status).toBe(200);
  expect([new Set(named.jobs).size, new Set(named.requests).size]).toEqual([1, 1]);
  const picture = env.JOB_MEDIA.getByName(named.jobs[0] ?? "");
  const painted = env.SHARED_REQUEST.getByName(named.requests[0] ?? "");
  await ring(painted, 5 * minutes);
  expect(await stored(painted)).toEqual(nothing);
  await ring(picture, 3 * days);
  expect((await stored(picture)).tables).not.toEqual([]);
  await ring(picture, 8 * days);
  expect(await stored(picture)).toEqual(nothing);
});
