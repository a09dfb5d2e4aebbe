// The client as a Worker has it, against the gateway's own front door with the real bindings.
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSluice, type Sluice, type TokenSource } from "../src/client/index.ts";
import { models } from "../src/models/index.ts";
import { documented } from "./models/documented.ts";
import { smallest } from "./models/requests.ts";
import { send } from "./support/callers.ts";
import { emptyStorage } from "./support/empty-storage.ts";
import { fromTheNetwork, origin } from "./support/front-door.ts";
import { testSettings } from "./support/settings.ts";

const flux = "black-forest-labs-flux-1-schnell";

async function mint(request: object): Promise<{ token: string; expiresAt: string }> {
  return (await send(env, "POST", "/tokens", { key: testSettings.APP_SECRET, body: request })).json();
}

/** Called when a job was sent, and its answer is still on the way. */
let sent = () => {};

const open = (token: TokenSource): Sluice =>
  createSluice({
    url: origin,
    token,
    fetch: (url, init) => {
      const answer = exports.default.fetch(new Request(url, { ...init, cf: fromTheNetwork }));
      if (url.endsWith("/run")) sent();
      return answer;
    },
  });
const clientOf = (user: string, terms: object = {}) => open(() => mint({ user, plan: "unlimited", ...terms }));

beforeEach(() => {
  sent = () => {};
  for (const level of ["log", "warn", "error"] as const) vi.spyOn(console, level).mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("the client", () => {
  it.each(models.map(({ id, kind }) => [id, kind] as const))("runs %s", async (id, kind) => {
    const input = smallest(documented.find((one) => one.id === id) as (typeof documented)[number]);
    const sluice = clientOf("ada");
    const { usd } = await sluice.estimate(id as string, input);
    const job = await sluice.run(id as string, input);
    const output = JSON.stringify(job.output);
    expect(output).toContain(
      { text: "choices", speech: "audio_url", video: "video_url" }[kind as string] ?? "image_url",
    );
    expect(job.cost).toBeGreaterThan(0);
    expect(job.cost).toBeLessThanOrEqual(usd);
    const { spent = [], jobs } = await sluice.usage({ by: "model" });
    expect(spent).toEqual([{ model: id, jobs: 1, usd: job.cost, assumedUsd: 0 }]);
    expect(jobs).toMatchObject([{ model: id, costUsd: job.cost, reservedUsd: usd }]);
  });

  it("streams a text in pieces that make the whole", async () => {
    const pieces = clientOf("ada").stream("gpt-oss-120b", { prompt: "hello" });
    let text = "";
    for (;;) {
      const { value, done } = await pieces.next();
      if (done) {
        expect(value.output[0]?.choices[0]?.tokens.join("")).toBe(text);
        break;
      }
      text += (value as { text: string[] }).text.join("");
    }
    expect(text).toContain("hello");
  });

  it("answers from the cache at no cost", async () => {
    const sluice = clientOf("ada");
    const input = { prompt: "a lighthouse", seed: 7 };
    const first = await sluice.run(flux, input);
    const again = await sluice.run(flux, input);
    expect(again.output.image_url).toBe(first.output.image_url);
    expect([first.cost === 0, again.cost]).toEqual([false, 0]);
  });

  it("shows the gallery page by page, and deletes from it", async () => {
    const sluice = clientOf("ada");
    for (const seed of [1, 2, 3]) await sluice.run(flux, { prompt: "a", seed });
    const first = await sluice.gallery({ limit: 2 });
    const rest = await sluice.gallery({ limit: 2, cursor: first.cursor ?? undefined });
    expect([first.images.length, rest.images.length, rest.cursor]).toEqual([2, 1, null]);
    await sluice.call(`/images/${first.images[0]?.key}`, { method: "DELETE" });
    expect((await sluice.gallery()).images).toHaveLength(2);
  });

  it("runs 50 jobs at once", async () => {
    const sluice = clientOf("ada");
    const jobs = await Promise.all(Array.from({ length: 50 }, (_, seed) => sluice.run(flux, { prompt: "a", seed })));
    expect(new Set(jobs.map(({ output }) => output.image_url)).size).toBe(50);
    const { limits, jobs: used } = await sluice.usage();
    expect(limits.filter(({ unit }) => unit === "jobs").map(({ used }) => used)).toEqual([]);
    expect(used.filter(({ status }) => status === "COMPLETED")).toHaveLength(50);
  });

  it("has its token renewed in the middle of a job", async () => {
    let asked = 0;
    const sluice = open(() => {
      asked++;
      // What is handed out first has ended before it is used.
      return asked === 1 ? "eyJhbGciOiJIUzI1NiJ9.e30.x" : mint({ user: "ada", plan: "unlimited" });
    });
    await Promise.all([sluice.usage(), sluice.usage()].map((call) => call.catch(() => {})));
    expect((await sluice.run(flux, { prompt: "a" })).status).toBe("COMPLETED");
    expect(asked).toBe(2);
  });

  it("says what is wrong with an input in the gateway's words, with the field", async () => {
    const refused = clientOf("ada").run(flux, { prompt: 7 as unknown as string });
    await expect(refused).rejects.toMatchObject({
      name: "SluiceError",
      code: "INVALID_REQUEST",
      status: 400,
      message: "input.prompt: Invalid input: expected string, received number",
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it("says when to come again where a limit is reached", async () => {
    const sluice = clientOf("ada", { rules: [{ unit: "requests", limit: 1, per: "hour" }] });
    await sluice.run(flux, { prompt: "a" });
    await expect(sluice.run(flux, { prompt: "b" })).rejects.toMatchObject({
      code: "RATE_LIMITED",
      retryAfter: expect.any(Number),
    });
  });

  it("throws a job's failure with the job", async () => {
    await expect(clientOf("ada").run(flux, { prompt: "[fail]" })).rejects.toMatchObject({
      code: "JOB_FAILED",
      message: "the prompt asked for a failure",
      job: { status: "FAILED" },
    });
  });
});

describe("an abort", () => {
  /** One job at a time: the next one is proof that the place of the first is free. */
  const narrow = () => clientOf("ada", { rules: [{ unit: "jobs", limit: 1 }] });

  it.each(["submitting", "IN_QUEUE", "IN_PROGRESS"])(
    "while it is %s cancels the job and frees its place",
    async (at) => {
      const sluice = narrow();
      const left = new AbortController();
      // What is submitted is cancelled from any state, whether this one was seen or passed over.
      const isAt = (state: string) => state === at || (at === "IN_QUEUE" && state === "IN_PROGRESS");
      const onState = (state: string) => {
        if (at !== "submitting" && isAt(state)) left.abort();
      };
      if (at === "submitting") sent = () => left.abort();
      const running = sluice.subscribe(flux, { prompt: "a [slow]" }, { signal: left.signal, onState });
      await expect(running).rejects.toMatchObject({ name: "AbortError" });
      expect((await sluice.run(flux, { prompt: "the next" })).status).toBe("COMPLETED");
      const { jobs } = await sluice.usage();
      expect(jobs.map(({ status }) => status)).toEqual(["COMPLETED", "CANCELLED"]);
    },
  );

  it("of a stream that says nothing yet cancels the job", async () => {
    const sluice = narrow();
    const left = new AbortController();
    const first = sluice.stream("gpt-oss-120b", { prompt: "a [slow] answer" }, { signal: left.signal }).next();
    await vi.waitFor(async () => expect((await sluice.usage()).jobs).toHaveLength(1));
    left.abort();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    expect((await sluice.run("gpt-oss-120b", { prompt: "the next" })).status).toBe("COMPLETED");
  });
});
