// Whoever sees a job's end first keeps its media: an answer, a stream of events, the notice, or the meter's alarm.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { statusPoller } from "../../../src/gateway/jobs/poll-upstream.ts";
import { imagesOf } from "../../../src/gateway/media/images.ts";
import type { JobOutcome } from "../../../src/gateway/media/job-media.ts";
import { Breaker } from "../../../src/gateway/upstream/breaker.ts";
import { keySearchOf } from "../../../src/gateway/upstream/own-keys.ts";
import { defaultTimes } from "../../../src/gateway/upstream/upstream.ts";
import { configOf } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { type Answer, kept, model, origin, painted, Studio, World } from "./studio.ts";

let world: World;
let studio: Studio;
let token: string;
beforeEach(async () => {
  world = new World();
  studio = new Studio();
  token = await studio.token("ada");
});
afterEach(emptyStorage);

type Job = { id: string; status: string; output?: { image_url: string; expires_at: string } };

async function submit(): Promise<{ id: string; ref: string }> {
  const { id } = await (await studio.paint(token, { operation: "run", input: { seed: -1 } })).json<Job>();
  expect(await kept("media/")).toEqual([]);
  return { id, ref: id.split(".")[0] ?? "" };
}

/** One link, in KV and in the gallery, that leads to the picture and that every further look confirms. */
async function expectKept(id: string): Promise<void> {
  await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
  const listed = await (await studio.ask("/images", token)).json<{ images: { url: string }[] }>();
  expect(listed.images).toHaveLength(1);
  const url = listed.images[0]?.url ?? "";
  expect(url).toMatch(/^https:\/\/sluice\.test\/images\//);
  expect((await studio.ask(url.replace(origin, ""), undefined)).status).toBe(200);
  const { output } = await (await new Studio().ask(`/v2/${model}/status/${id}`, token)).json<Job>();
  expect(output?.image_url).toBe(url);
  expect(await kept("media/")).toHaveLength(1);
}

describe("the first word", () => {
  it.each(["status", "status-sync"])("may be a %s", async (operation) => {
    const { id } = await submit();
    await studio.ask(`/v2/${model}/${operation}/${id}`, token);
    await expectKept(id);
  });

  it("may be a stream of events", async () => {
    const { id } = await submit();
    expect(await (await studio.ask(`/v2/${model}/events/${id}`, token)).text()).toContain(`${origin}/images/`);
    await expectKept(id);
  });

  it("may be a stream's last chunk, of which the status says what the job made", async () => {
    const { id } = await submit();
    world.written = (ref, job) => JSON.stringify({ id: ref, stream: [], ...job });
    await studio.ask(`/v2/${model}/stream/${id}`, token);
    await expectKept(id);
  });

  it("may be the notice", async () => {
    const { id, ref } = await submit();
    const body = { id: ref, ...painted("https://cdn.example.net/a.png") };
    const told = await studio.ask(new URL(world.webhook).pathname, undefined, "POST", { body });
    expect(told.status).toBe(200);
    await expectKept(id);
  });

  it("may be the meter's alarm, which knows no origin and leaves the URL as it is", async () => {
    const { id, ref } = await submit();
    const config = configOf();
    const send = async () => Response.json({ id: ref, ...painted("https://cdn.example.net/a.png") });
    const upstream = {
      base: "https://models.example.com/v2",
      keys: ["key"],
      keySearch: keySearchOf(config),
      send,
      breaker: new Breaker(),
      payer: "user:ada",
      times: defaultTimes,
    };
    const ask = statusPoller(config, imagesOf(config, env).links, upstream, config.publicUrl);
    const [, admission = newAdmission(0)] = id.split(".");
    const answer = await ask({
      model,
      upstreamId: ref,
      owner: "user:ada",
      admission,
      first: admission,
      isUnproven: false,
    });
    expect(answer).toMatchObject({ status: "COMPLETED", media: [{ media: { owner: "user:ada" } }] });
    const { output } = JSON.parse(typeof answer === "object" ? (answer.body ?? "") : "") as Job;
    expect(output).toMatchObject({ image_url: "https://cdn.example.net/a.png", expires_at: expect.any(String) });
    await studio.ask(`/v2/${model}/status/${id}`, token);
    await expectKept(id);
  });

  it("is not that a job failed: a retry through another isolate gives it another end", async () => {
    let answer: Answer = { status: "FAILED" };
    world.written = (ref) => JSON.stringify({ id: ref, ...answer });
    const { id } = await (await studio.paint(token, { operation: "run" })).json<Job>();
    await studio.ask(`/v2/${model}/status/${id}`, token);
    answer = { status: "IN_QUEUE" };
    expect((await new Studio().ask(`/v2/${model}/retry/${id}`, token, "POST")).status).toBe(200);
    answer = painted("https://cdn.example.net/a.png");
    const { output } = await (await studio.ask(`/v2/${model}/status/${id}`, token)).json<Job>();
    expect(output?.image_url).toMatch(/^https:\/\/sluice\.test\/images\//);
    await expectKept(id);
  });

  it("is asked for once an isolate and admission", async () => {
    const { id } = await submit();
    const asked: string[] = [];
    const getByName = (name: string) => {
      asked.push(name);
      return env.JOB_MEDIA.getByName(name);
    };
    const other = new Studio({ JOB_MEDIA: { getByName } });
    for (let times = 0; times < 3; times++) await other.ask(`/v2/${model}/status/${id}`, token);
    expect(asked).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
  });

  it("is not remembered of more jobs than an isolate has room for, however long their URLs are", async () => {
    let asked = 0;
    const conclude = async ({ media }: JobOutcome) => {
      asked++;
      return { kept: media, rider: null };
    };
    const JOB_MEDIA = { getByName: () => ({ conclude }) };
    const { links } = imagesOf(configOf(), { ...env, JOB_MEDIA } as unknown as Env);
    const answer = { status: "COMPLETED", output: { image_url: `https://cdn.example.net/${"a".repeat(8000)}.png` } };
    const admissions = Array.from({ length: 300 }, () => newAdmission(0));
    const look = (admission = "") => {
      const job = { owner: "user:ada", model, known: undefined, upstreamId: admission, admission, ending: undefined };
      return links.present(answer, job, origin, 0);
    };
    for (const admission of admissions) await look(admission);
    await look(admissions.at(-1));
    expect(asked).toBe(300);
    await look(admissions[0]);
    expect(asked).toBe(301);
  });

  it("is kept of films and of sounds", async () => {
    world.submitted = () => ({
      status: "COMPLETED",
      output: { video_url: "https://cdn.example.net/a.mp4", audio_url: "https://cdn.example.net/a.wav", cost: 0.1 },
    });
    const { id } = await submit();
    const { output } = await (await studio.ask(`/v2/${model}/status/${id}`, token)).json<Job>();
    expect(output).toMatchObject({
      video_url: expect.stringMatching(/^https:\/\/sluice\.test\/images\/[0-9a-f]{32}-v/),
      audio_url: expect.stringMatching(/^https:\/\/sluice\.test\/images\/[0-9a-f]{32}-a/),
    });
    expect(await kept("media/")).toHaveLength(2);
  });
});

describe("a write of KV that fails", () => {
  let path: string;
  beforeEach(async () => {
    const put = vi.spyOn(Object.getPrototypeOf(env.IMAGES), "put").mockRejectedValueOnce(new Error("busy"));
    ({ path } = await studio.link(token, { input: { seed: -1 } }));
    put.mockRestore();
    expect(await kept("media/")).toEqual([]);
  });
  const alarm = async () => {
    const [, tag = ""] = /images\/([0-9a-f]{32})-/.exec(path) ?? [];
    expect(await runDurableObjectAlarm(env.JOB_MEDIA.getByName(tag))).toBe(true);
  };

  it("is made by the object's alarm, and the link works meanwhile", async () => {
    expect((await studio.ask(path, undefined)).status).toBe(200);
    await alarm();
    await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
  });

  it("is not made any more once the link was deleted", async () => {
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    await alarm();
    expect(await kept("media/")).toEqual([]);
    await expectProblem(await new Studio().ask(path, undefined), "NOT_FOUND");
  });
});
