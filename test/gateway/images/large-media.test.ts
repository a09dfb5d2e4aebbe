// Media of an answer that is too large to hold: its links, its place in the gallery and its lifetime are a small one's.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/admission.ts";
import { Breaker } from "../../../src/gateway/breaker.ts";
import { imagesOf } from "../../../src/gateway/images/images.ts";
import { asker } from "../../../src/gateway/jobs/ask-upstream.ts";
import { keySearchOf } from "../../../src/gateway/own-keys.ts";
import { usualTimes } from "../../../src/gateway/upstream.ts";
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
  readonly expires_at: string;
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
const pathOf = ({ output }: Job) => output.image_url.replace(origin, "");

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
    ])("is the gateway's link in the answer of %s, and in each that follows", async (_, input) => {
      world.written = write;
      const { text, job } = await read(await studio.paint(token, { input }));
      expect(job.status).toBe("COMPLETED");
      expect(job.output.image_url).toMatch(/^https:\/\/sluice\.test\/images\/[0-9a-f]{32}-i/);
      expect(job.output.film === film).toBe(true);
      const picture = await studio.ask(pathOf(job), undefined);
      expect([picture.status, picture.headers.get("Content-Type")]).toEqual([200, "image/png"]);

      for (const at of [studio, new Studio(), new Studio()]) {
        const again = await look(job.id, at);
        expect(again.job.output).toMatchObject({ image_url: job.output.image_url, expires_at: job.output.expires_at });
        expect(again.text === text).toBe(true);
      }
      expect(await gallery(token)).toMatchObject([
        { url: job.output.image_url, cost: 0.0025, expiresAt: job.output.expires_at },
      ]);
      expect(await kept("media/")).toHaveLength(1);
      expect(await charged("ada")).toEqual({ microUsd: 2500, jobs: 1, open: 0 });
    });
  });

  it("is replaced, and all else stays byte for byte", async () => {
    world.written = (id) =>
      ` {"id":"${id}","status":"COMPLETED","output":{${big}, "image_url" :${quoted} }, "n":1.0}\n`;
    const { text, job } = await look(await submit(), studio);
    const { image_url, expires_at } = job.output;
    const expected = ` {"id":"${job.id}","status":"COMPLETED","output":{${big}, "image_url" :"${image_url}" ,"expires_at":"${expires_at}"}, "n":1.0}\n`;
    expect(text === expected).toBe(true);
  });

  it("is known when the last byte is there, though KV is behind", async () => {
    const behind = new Studio({ IMAGES: { get: async () => null, delete: async () => {} } });
    const { job } = await look(await submit(), behind);
    expect((await behind.ask(pathOf(job), undefined)).status).toBe(200);

    // Here the link is out before the job has a name.
    world.written = (id) => `{"output":{"image_url":${quoted},${big}},"status":"COMPLETED","id":"${id}"}`;
    const early = await read(await behind.paint(token, { input: { seed: -1 } }));
    expect((await behind.ask(pathOf(early.job), undefined)).status).toBe(200);
    expect((await behind.ask(pathOf(early.job), token, "DELETE")).status).toBe(204);
    await expectProblem(await behind.ask(pathOf(early.job), undefined), "NOT_FOUND");
  });

  it("is written to KV once", async () => {
    const puts = vi.spyOn(Object.getPrototypeOf(env.IMAGES), "put");
    for (const [at, write] of [orders[0], orders[3]].entries()) {
      world.written = write?.[1] ?? world.written;
      const { job } = await read(await studio.paint(token, { input: { seed: -1 } }));
      await vi.waitFor(() => expect(puts).toHaveBeenCalledTimes(at + 1));
      await look(job.id);
      expect(puts).toHaveBeenCalledTimes(at + 1);
    }
  });

  it("says what the operator wants it to", async () => {
    const { job } = await look(await submit(), new Studio({ IMAGE_LINKS: "upstream" }));
    expect(job.output).toMatchObject({ image_url: url, expires_at: expect.any(String) });
    expect(await gallery(token)).toHaveLength(1);
  });

  it("stays where JOB_MEDIA cannot be reached: no dead link", async () => {
    const lost = new Proxy({}, { get: () => () => expect.unreachable() });
    const alone = new Studio({ JOB_MEDIA: lost });
    const { job } = await look(await submit(), alone);
    expect(job.output.image_url).toBe(url);
    expect((await look(job.id)).job.output.image_url).toMatch(/^https:\/\/sluice\.test\/images\//);
  });

  it("stays where it is one of many, as in a small answer", async () => {
    for (const more of [{}, { film }]) {
      world.submitted = () => ({ status: "COMPLETED", output: [{ image_url: url, cost: 0.0025, ...more }] });
      const { job } = await look(await submit(), studio);
      expect(job.output).toMatchObject([{ image_url: url }]);
    }
  });

  it("is base64 where it is base64", async () => {
    const image_url = `data:image/png;base64,${"A".repeat(300_000)}`;
    world.submitted = () => ({ status: "COMPLETED", output: { image_url, cost: 0.0025 } });
    const { job } = await look(await submit(), studio);
    expect(job.output).toEqual({ image_url, cost: 0.0025 });
    expect(await kept("media/")).toEqual([]);
  });

  it("is one of two, and the sooner end is told, whatever the model service says of it", async () => {
    const end = Math.floor(Date.now() / 1000) * 1000 + 60 * minuteMs;
    const audio_url = `https://cdn.example.net/a.wav?Expires=${end / 1000}`;
    const video_url = "https://cdn.example.net/a.mp4";
    world.submitted = () => ({
      status: "COMPLETED",
      output: { video_url, expires_at: "never", film, audio_url, cost: 0.1 },
    });
    const { job } = await look(await submit(), studio);
    expect(job.output).toMatchObject({
      video_url: expect.stringMatching(/\/images\/[0-9a-f]{32}-v/),
      audio_url: expect.stringMatching(/\/images\/[0-9a-f]{32}-a/),
      expires_at: new Date(end).toISOString(),
    });
    expect(await gallery(token)).toHaveLength(2);
  });

  it("is not answered to another request: nobody held the rest of it", async () => {
    const first = await read(await studio.paint(token));
    const again = await studio.paint(token);
    expect(again.headers.get("X-Cache")).toBe("MISS");
    expect((await again.json<Job>()).output.film === first.job.output.film).toBe(true);
    expect(await kept("reuse/")).toEqual([]);
  });

  it("that is poisoned is a link that leads nowhere", async () => {
    const honest = await look(await submit(), studio);
    expect((await studio.ask(pathOf(honest.job), undefined)).status).toBe(200);
    world.submitted = () => ({
      status: "COMPLETED",
      output: { image_url: "https://169.254.169.254/latest/meta-data", film, cost: 0.0025 },
    });
    const { job } = await look(await submit(), studio);
    expect(job.output.image_url).toMatch(/^https:\/\/sluice\.test\/images\//);
    await expectProblem(await studio.ask(pathOf(job), undefined), "MEDIA_REFUSED");
    expect(world.calls.filter((call) => call.includes("169.254"))).toEqual([]);
  });
});

describe("its lifetime", () => {
  it.each([
    [
      "before the URL",
      (id: string) =>
        `{"delayTime":2000,"executionTime":3000,"id":"${id}","output":{"image_url":${quoted},${big}},"status":"COMPLETED"}`,
      0,
    ],
    [
      "after it",
      (id: string) =>
        `{"id":"${id}","output":{"image_url":${quoted},${big}},"delayTime":2000,"executionTime":3000,"status":"COMPLETED"}`,
      20 * minuteMs - 5000,
    ],
    [
      "half before it",
      (id: string) =>
        `{"id":"${id}","delayTime":2000,"output":{"image_url":${quoted},${big}},"executionTime":3000,"status":"COMPLETED"}`,
      20 * minuteMs - 5000,
    ],
  ])("counts from the job's end where its times come %s", async (_, write, lateMs) => {
    const start = Math.floor(Date.now() / 1000) * 1000;
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    world.written = write;
    const id = await submit();
    vi.setSystemTime(start + 20 * minuteMs);
    const end = start + 5000 + weekMs;
    const { job } = await look(id, studio);
    // What the answer had not said yet when its output ended can only shorten it.
    expect(Date.parse(job.output.expires_at)).toBe(end + lateMs);
    expect((await look(id)).job.output).toMatchObject({
      image_url: job.output.image_url,
      expires_at: new Date(end).toISOString(),
    });
    expect(await gallery(token)).toMatchObject([{ expiresAt: new Date(end).toISOString() }]);

    vi.setSystemTime(end - 1);
    expect((await studio.ask(pathOf(job), undefined)).status).toBe(200);
    vi.setSystemTime(end);
    const body = await expectProblem(await new Studio().ask(pathOf(job), undefined), "GONE");
    expect(body["detail"]).toContain(new Date(end).toISOString());
  });

  it("begins anew where the URL was no good end's", async () => {
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
    const { job } = await look(id);
    expect(Date.parse(job.output.expires_at)).toBe(start + 50 * minuteMs + weekMs);
    expect((await studio.ask(pathOf(job), undefined)).status).toBe(200);
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
    const { job } = await look(id, studio);
    expect(await gallery(token)).toMatchObject([{ url: job.output.image_url }]);
  });

  it("may be known by the notice first: the answer has its link", async () => {
    const id = await submit();
    const [ref = ""] = id.split(".");
    const body = { id: ref, ...painted(url, { output: { image_url: url, film, cost: 0.0025 } }) };
    const told = await studio.ask(new URL(world.webhook).pathname, undefined, "POST", { body });
    expect(told.status).toBe(200);
    const [listed] = await gallery(token);
    expect((await look(id)).job.output.image_url).toBe(listed?.url);
    expect(await gallery(token)).toHaveLength(1);
  });

  it("may be known by the notice while the answer is on its way: what the gallery deletes is gone", async () => {
    const noticed = Promise.withResolvers<void>();
    const { getByName } = env.JOB_MEDIA;
    const late = (name: string) => {
      const object = getByName.call(env.JOB_MEDIA, name);
      const mirror: typeof object.mirror = async (...said) => noticed.promise.then(() => object.mirror(...said));
      return new Proxy(object, { get: (_, method) => (method === "mirror" ? mirror : Reflect.get(object, method)) });
    };
    world.written = (id) => `{"output":{"image_url":${quoted},${big}},"status":"COMPLETED","id":"${id}"}`;
    const asked = new Studio({ JOB_MEDIA: { getByName: late } }).paint(token, { input: { seed: -1 } });
    await vi.waitFor(() => expect(world.webhook).not.toBe(""));
    const body = { id: "job-1", ...painted(url) };
    expect((await studio.ask(new URL(world.webhook).pathname, undefined, "POST", { body })).status).toBe(200);
    noticed.resolve();
    const { job } = await read(await asked);
    expect((await studio.ask(pathOf(job), undefined)).status).toBe(200);
    const [listed] = await gallery(token);
    expect((await studio.ask(listed?.url.replace(origin, "") ?? "", token, "DELETE")).status).toBe(204);
    await expectProblem(await new Studio().ask(pathOf(job), undefined), "NOT_FOUND");
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

  it("is told to the client's webhook with the same link", async () => {
    const told: string[] = [];
    world.elsewhere = async (request) => {
      told.push(await request.text());
      return new Response(null);
    };
    const input = { prompt: "a lighthouse", seed: 7, width: 256, height: 256 };
    const body = { input, webhook: "https://app.example.org/hook" };
    const { text, job } = await read(await studio.ask(`/v2/${model}/runsync`, token, "POST", { body }));
    await vi.waitFor(async () => expect(await runDurableObjectAlarm(env.USER_METER.getByName("user:ada"))).toBe(true));
    expect(told.map((body) => (JSON.parse(body) as Job).output.image_url)).toEqual([job.output.image_url]);
    expect(text).not.toContain("cdn.example.net");
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
      times: usualTimes,
      send: async () => Response.json({ id: ref, ...vast }),
    };
    const vast: Answer = {
      status: "COMPLETED",
      output: { image_url: url, film: film.repeat(10), size: 77, cost: 0.0025 },
    };
    const ask = asker(config, imagesOf(config, env).links, upstream, config.publicUrl);
    const answer = await ask({ model, upstreamId: ref, owner: "user:ada", admission, first: admission });
    expect(answer).toMatchObject({
      status: "COMPLETED",
      costMicroUsd: 2500,
      media: [{ key: expect.any(String), media: { owner: "user:ada", url, size: 77, cost: 0.0025 } }],
    });
    await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
    const { job } = await look(id, studio);
    expect(await gallery(token)).toMatchObject([{ url: job.output.image_url, size: 77 }]);
    expect((await studio.ask(pathOf(job), undefined)).status).toBe(200);
  });
});
