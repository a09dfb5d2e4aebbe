// Media of an answer that is too large to hold: its URL stays the model service's, and the gallery has a link of ours.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { statusPoller } from "../../../src/gateway/jobs/poll-upstream.ts";
import { imagesOf } from "../../../src/gateway/media/images.ts";
import { Breaker } from "../../../src/gateway/upstream/breaker.ts";
import { keySearchOf } from "../../../src/gateway/upstream/own-keys.ts";
import { defaultTimes } from "../../../src/gateway/upstream/upstream.ts";
import { configOf } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { type Answer, charged, kept, model, origin, painted, Studio, World } from "./studio.ts";

const url = "https://cdn.example.net/a.png?x=1&y=2";
const film = "é😀x".repeat(60_000);
const weekMs = 7 * 24 * 60 * 60_000;
const minuteMs = 60_000;

let world: World;
let studio: Studio;
let token: string;
beforeEach(async () => {
  world = new World();
  studio = new Studio();
  token = await studio.token("ada");
  world.submitted = () => painted(url, { output: { image_url: url, film, cost: 0.0025 } });
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await emptyStorage();
});

interface Output {
  readonly image_url: string;
  readonly film: string;
  readonly cost: number;
}
type Job = { id: string; status: string; output: Output };
interface Listed {
  readonly images: { url: string; cost: number; size: number | null; expiresAt: string }[];
}

const gallery = async (token: string) => (await (await studio.ask("/images", token)).json<Listed>()).images;
const read = async (response: Response) => {
  const text = await response.text();
  return { text, job: JSON.parse(text) as Job };
};
const look = async (id: string, at = new Studio()) => read(await at.ask(`/v2/${model}/status/${id}`, token));
const submit = async (): Promise<string> => {
  const { id } = await (await studio.paint(token, { operation: "run", input: { seed: -1 } })).json<Job>();
  return id;
};
const pathOf = (listed: Listed["images"][number] | undefined) => listed?.url.replace(origin, "") ?? "";

const quoted = JSON.stringify(url);
const big = `"film":"${film}"`;
const orders: [string, (id: string) => string][] = [
  ["first", (id) => `{"id":"${id}","status":"COMPLETED","output":{"image_url":${quoted},${big},"cost":0.0025}}`],
  ["last", (id) => `{"id":"${id}","status":"COMPLETED","output":{${big},"cost":0.0025,"image_url":${quoted}}}`],
  [
    "before the status",
    (id) => `{"id":"${id}","output":{${big},"image_url":${quoted},"cost":0.0025},"status":"COMPLETED"}`,
  ],
  [
    "before everything",
    (id) => `{"output":{"image_url":${quoted},"cost":0.0025,${big}},"status":"COMPLETED","id":"${id}"}`,
  ],
  [
    "in the service's own order",
    (id) =>
      `{"delayTime":2,"executionTime":3,"id":"${id}","output":{"cost":0.0025,"image_url":${quoted},${big}},"status":"COMPLETED"}`,
  ],
  [
    "in escapes and blanks",
    (id) =>
      ` { "id" : "${id}", "output" : { "image\\u005furl" : ${quoted.replaceAll("/", "\\/").replace("c", "\\u0063")} , ${big} , "cost":0.0025 } , "status":"COMPLETED" } `,
  ],
];

describe("a media URL in an answer above 256 KB", () => {
  describe.each(orders)("%s", (_, write) => {
    it.each([
      ["a submit", { seed: -1 }],
      ["a flight", { seed: 7 }],
    ])("stays in the answer of %s, and the gallery has its link, once", async (_, input) => {
      world.written = write;
      const { text, job } = await read(await studio.paint(token, { input }));
      expect(text === write("job-1").replace('"job-1"', JSON.stringify(job.id))).toBe(true);
      for (const at of [studio, new Studio()]) expect((await look(job.id, at)).text === text).toBe(true);
      const listed = await gallery(token);
      expect(listed).toMatchObject([
        { url: expect.stringMatching(/^https:\/\/sluice\.test\/images\/[0-9a-f]{32}-i/), cost: 0.0025 },
      ]);
      const picture = await studio.ask(pathOf(listed[0]), undefined);
      expect([picture.status, picture.headers.get("Content-Type")]).toEqual([200, "image/png"]);
      expect(await kept("media/")).toHaveLength(1);
      expect(await charged("ada")).toEqual({ microUsd: 2500, jobs: 1, open: 0 });
    });
  });

  it("stays where JOB_MEDIA cannot be reached, and is listed after the next look", async () => {
    const lost = new Proxy({}, { get: () => () => expect.unreachable() });
    const id = await submit();
    expect((await look(id, new Studio({ JOB_MEDIA: lost }))).job.output.image_url).toBe(url);
    await look(id);
    expect(await kept("media/")).toHaveLength(1);
  });

  it("has a link that is gone once its owner deleted it, and does not come back", async () => {
    const { job } = await look(await submit(), studio);
    const [listed] = await gallery(token);
    expect((await studio.ask(pathOf(listed), token, "DELETE")).status).toBe(204);
    await look(job.id, new Studio());
    expect(await gallery(token)).toEqual([]);
    await expectProblem(await new Studio().ask(pathOf(listed), undefined), "NOT_FOUND");
  });

  it("is base64 where it is base64", async () => {
    const image_url = `data:image/png;base64,${"A".repeat(300_000)}`;
    world.submitted = () => ({ status: "COMPLETED", output: { image_url, cost: 0.0025 } });
    const { job } = await look(await submit(), studio);
    expect(job.output).toEqual({ image_url, cost: 0.0025 });
    expect(await kept("media/")).toEqual([]);
  });

  it("is one of two, each with the end that its own URL says", async () => {
    const end = Math.floor(Date.now() / 1000) * 1000 + 60 * minuteMs;
    const audio_url = `https://cdn.example.net/a.wav?Expires=${end / 1000}`;
    const video_url = "https://cdn.example.net/a.mp4";
    world.submitted = () => ({ status: "COMPLETED", output: { video_url, film, audio_url, cost: 0.1 } });
    await look(await submit(), studio);
    const ends = (await gallery(token)).map(({ expiresAt }) => expiresAt);
    expect(ends).toHaveLength(2);
    expect(ends).toContain(new Date(end).toISOString());
  });

  it("is not answered to another request: nobody held the rest of it", async () => {
    const first = await read(await studio.paint(token));
    const again = await studio.paint(token);
    expect(again.headers.get("X-Cache")).toBe("MISS");
    expect((await again.json<Job>()).output.film === first.job.output.film).toBe(true);
    expect(await kept("reuse/")).toEqual([]);
  });

  it("that is poisoned has a link that leads nowhere", async () => {
    world.submitted = () => ({
      status: "COMPLETED",
      output: { image_url: "https://169.254.169.254/latest/meta-data", film, cost: 0.0025 },
    });
    await look(await submit(), studio);
    const [listed] = await gallery(token);
    await expectProblem(await studio.ask(pathOf(listed), undefined), "MEDIA_REFUSED");
    expect(world.calls.filter((call) => call.includes("169.254"))).toEqual([]);
  });
});

describe("its lifetime", () => {
  it.each([
    [
      "before the URL",
      (id: string) =>
        `{"delayTime":2000,"executionTime":3000,"id":"${id}","output":{"image_url":${quoted},${big}},"status":"COMPLETED"}`,
    ],
    [
      "after it",
      (id: string) =>
        `{"id":"${id}","output":{"image_url":${quoted},${big}},"delayTime":2000,"executionTime":3000,"status":"COMPLETED"}`,
    ],
  ])("counts from the job's end where its times come %s", async (_, write) => {
    const start = Math.floor(Date.now() / 1000) * 1000;
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    world.written = write;
    const id = await submit();
    vi.setSystemTime(start + 20 * minuteMs);
    const end = start + 5000 + weekMs;
    await look(id);
    const [listed] = await gallery(token);
    expect(listed).toMatchObject({ expiresAt: new Date(end).toISOString() });

    vi.setSystemTime(end - 1);
    expect((await studio.ask(pathOf(listed), undefined)).status).toBe(200);
    vi.setSystemTime(end);
    const body = await expectProblem(await new Studio().ask(pathOf(listed), undefined), "GONE");
    expect(body["detail"]).toContain(new Date(end).toISOString());
  });

  it("begins at the good end, not before", async () => {
    const start = Math.floor(Date.now() / 1000) * 1000;
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    let status = "IN_PROGRESS";
    world.written = (id) => `{"output":{"image_url":${quoted},${big}},"id":"${id}","status":"${status}"}`;
    const id = await submit();
    for (status of ["IN_PROGRESS", "FAILED"]) {
      vi.setSystemTime(Date.now() + minuteMs);
      await look(id);
      expect(await gallery(token)).toEqual([]);
      expect(await kept("media/")).toEqual([]);
    }
    status = "COMPLETED";
    vi.setSystemTime(start + 50 * minuteMs);
    await look(id);
    const [listed] = await gallery(token);
    expect(listed).toMatchObject({ expiresAt: new Date(start + 50 * minuteMs + weekMs).toISOString() });
    expect((await studio.ask(pathOf(listed), undefined)).status).toBe(200);
  });
});

describe("its job's end", () => {
  it("is left as it is where it is no good one", async () => {
    world.submitted = () => ({ status: "FAILED", error: "no", output: { image_url: url, film } });
    const { job } = await look(await submit(), studio);
    expect(job).toMatchObject({ status: "FAILED", output: { image_url: url } });
    expect(await gallery(token)).toEqual([]);
  });

  it("is seen by nobody in an answer that breaks off, and by the next look", async () => {
    const id = await submit();
    world.written = (ref, job) => JSON.stringify({ id: ref, ...job }).slice(0, -1);
    const cut = await studio.ask(`/v2/${model}/status/${id}`, token, "GET", { untouched: true });
    await expect(cut.text()).rejects.toThrow();
    expect(await kept("media/")).toEqual([]);
    expect(await gallery(token)).toEqual([]);
    world.written = (ref, job) => JSON.stringify({ id: ref, ...job });
    await look(id, studio);
    expect(await gallery(token)).toHaveLength(1);
  });

  it("may be known by the notice first: there is one link all the same", async () => {
    const id = await submit();
    const [ref = ""] = id.split(".");
    const body = { id: ref, ...painted(url, { output: { image_url: url, film, cost: 0.0025 } }) };
    const told = await studio.ask(new URL(world.webhook).pathname, undefined, "POST", { body });
    expect(told.status).toBe(200);
    const before = await gallery(token);
    expect(before).toHaveLength(1);
    await look(id);
    expect(await gallery(token)).toEqual(before);
    expect(await kept("media/")).toHaveLength(1);
  });

  it("is not what a notice says of a job that the service does not confirm", async () => {
    const id = await submit();
    const [ref = ""] = id.split(".");
    world.written = () => "forgotten";
    const body = { id: ref, ...painted(url, { output: { image_url: url, film: film.repeat(60), cost: 0.0025 } }) };
    const told = await studio.ask(new URL(world.webhook).pathname, undefined, "POST", { body });
    expect(told.status).toBe(200);
    expect(await gallery(token)).toEqual([]);
  });

  it("is told to the client's webhook with the link that the gallery has", async () => {
    const told: string[] = [];
    world.elsewhere = async (request) => {
      told.push(await request.text());
      return new Response(null);
    };
    const input = { prompt: "a lighthouse", seed: 7, width: 256, height: 256 };
    const body = { input, webhook: "https://app.example.org/hook" };
    await read(await studio.ask(`/v2/${model}/runsync`, token, "POST", { body }));
    await vi.waitFor(async () => expect(await runDurableObjectAlarm(env.USER_METER.getByName("user:ada"))).toBe(true));
    expect(told.map((body) => (JSON.parse(body) as Job).output.image_url)).toEqual([(await gallery(token))[0]?.url]);
    expect(told.join()).not.toContain("cdn.example.net");
  });

  it("is kept by the meter's alarm where nobody looks", async () => {
    const id = await submit();
    const [ref = "", admission = newAdmission(0)] = id.split(".");
    const config = configOf();
    const upstream = {
      base: "https://models.example.com/v2",
      keys: ["key"],
      keySearch: keySearchOf(config),
      breaker: new Breaker(),
      payer: "user:ada",
      times: defaultTimes,
      send: async () => Response.json({ id: ref, ...vast }),
    };
    const vast: Answer = {
      status: "COMPLETED",
      output: { image_url: url, film: film.repeat(10), size: 77, cost: 0.0025 },
    };
    const ask = statusPoller(config, imagesOf(config, env).links, upstream, config.publicUrl);
    const job = { model, upstreamId: ref, owner: "user:ada", admission, first: admission, isUnproven: false };
    const answer = await ask(job);
    expect(answer).toMatchObject({
      status: "COMPLETED",
      costMicroUsd: 2500,
      media: [{ key: expect.any(String), media: { owner: "user:ada", url, size: 77, cost: 0.0025 } }],
    });
    await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
    await look(id, studio);
    const [listed] = await gallery(token);
    expect(listed).toMatchObject({ size: 77 });
    expect((await studio.ask(pathOf(listed), undefined)).status).toBe(200);
  });
});
