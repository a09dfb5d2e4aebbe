// A large body is priced by what it says: admitted at the least its model can cost, and amended before its last byte.
import { describe, expect, it } from "vitest";
import type { AdmitRequest, Amendment } from "../../../src/gateway/quota/metering.ts";
import { findModel } from "../../../src/models/index.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, watchCanary } from "./fake-upstream.ts";
import { type Heard, MeterTap } from "./meter-tap.ts";

watchCanary();

const photo = (kilobytes: number) => `data:image/png;base64,${"A".repeat(kilobytes * 1024)}`;
const film = "wan-2-6-i2v";

function stage(answer = () => json({ id: "job-1", status: "IN_QUEUE" })) {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(answer, { USER_METER: tap.namespace });
  const run = (model: string, body: unknown, headers: Record<string, string> = {}) =>
    upstream.call("POST", `/v2/${model}/run`, {
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers,
    });
  const amended = () => tap.of("amend").map(([, amendment]) => amendment as Amendment);
  const admitted = () => tap.of("admit").map(([request]) => request as AdmitRequest);
  return { tap, upstream, run, amended, admitted };
}

describe("a 3 MB photo costs what a 100 KB photo costs", () => {
  it.each<[string, object, number]>([
    ["five seconds of 720p by default", {}, 500_000],
    ["fifteen seconds of 1080p", { duration: 15, size: "1920*1080" }, 2_250_000],
  ])("in wan-2-6-i2v, %s", async (_name, more, microUsd) => {
    const { run, amended, admitted } = stage();
    const body = (image: string) => ({ input: { prompt: "a lighthouse", image, ...more } });
    expect((await run(film, body(photo(100)))).status).toBe(200);
    expect((await run(film, body(photo(3 * 1024)))).status).toBe(200);
    expect(admitted().map(({ reserveMicroUsd }) => reserveMicroUsd)).toEqual([microUsd, findModel(film)?.leastPrice]);
    expect(amended()).toMatchObject([{ reserveMicroUsd: microUsd }]);
  });

  it("and what was read of it is checked as in a small one", async () => {
    const { run, tap, upstream } = stage();
    const answer = await run(film, { input: { prompt: "x", image: photo(300), duration: 7 } });
    await expectProblem(answer, "INVALID_REQUEST");
    expect(tap.names()).toEqual(["admit", "release"]);
    expect(await upstream.jobs()).toEqual([]);
  });
});

describe("a member that was too large to be read", () => {
  it("means the highest price of what it decides", async () => {
    const { run, amended } = stage();
    const size = JSON.stringify("x".repeat(300 * 1024));
    await run(film, `{"input":{"prompt":"x","image":"https://a.example.net/a.png","duration":10,"size":${size}}}`);
    expect(amended()).toMatchObject([{ reserveMicroUsd: 1_500_000 }]);
  });

  it("that is a number means the highest price of all", async () => {
    const { run, amended } = stage();
    const number = `1${"0".repeat(300 * 1024)}`;
    await run(film, `{"input":{"prompt":"x","image":"https://a.example.net/a.png","num_videos":${number}}}`);
    expect(amended()).toMatchObject([{ reserveMicroUsd: findModel(film)?.maxPrice }]);
  });

  it.each(["options", "generation", "anything"])(
    "attack H5: hides no multiplier, whatever it is called: %s",
    async (name) => {
      const { run, amended } = stage();
      const hidden = { [name]: { pad: "x".repeat(5000), n: 100 } };
      for (const value of [hidden, { [name]: [hidden] }]) {
        await run(film, { input: { prompt: "x", image: photo(300), ...value } });
      }
      const { maxPrice } = findModel(film) ?? {};
      expect(amended()).toMatchObject([{ reserveMicroUsd: maxPrice }, { reserveMicroUsd: maxPrice }]);
    },
  );

  it("that may hide a multiplier means the highest price of all", async () => {
    const { run, amended } = stage();
    const messages = [{ role: "user", content: "x" }];
    const sampling_params = { note: "x".repeat(300 * 1024), n: 100, max_tokens: 1 };
    await run("granite-4-0-h-small", { input: { messages, sampling_params } });
    expect(amended()).toMatchObject([{ reserveMicroUsd: findModel("granite-4-0-h-small")?.maxPrice }]);
  });

  it("of text counts by its bytes", async () => {
    const { run, amended } = stage();
    const model = findModel("gpt-oss-120b");
    const prompt = "x".repeat(300 * 1024);
    await run("gpt-oss-120b", { input: { prompt, max_tokens: 10 } });
    const [{ reserveMicroUsd = 0 } = {}] = amended();
    const small = model?.reserve({ prompt: "x".repeat(100_000), max_tokens: 10 }) ?? 0;
    expect(reserveMicroUsd).toBeGreaterThan(small);
    expect(reserveMicroUsd).toBeLessThan(model?.maxPrice ?? 0);
  });

  it("is what its kind says to no rule: a schema that wants an address is not asked", async () => {
    const { run } = stage();
    expect((await run(film, { input: { prompt: "x", image: ["not", "a", "string", photo(300)] } })).status).toBe(200);
  });
});

describe("attack H5: a price that is said twice", () => {
  const said = (members: string) => `{"prompt":"x","image":"${photo(300)}","duration":5,${members}}`;
  it.each([
    ["in a member", `{"input":${said(`"duration":15,"duration":5`)}}`],
    ["in an escape", `{"input":${said(String.raw`"d\u0075ration":15,"duration":5`)}}`],
    ["in a member within", `{"input":${said(`"options":{"more":[{"n":100,"n":1}]}`)}}`],
    ["in two inputs", `{"input":${said(`"seed":1`)},"input":${said(`"seed":2`)}}`],
  ])("%s means the highest price, whichever a parser takes", async (_name, body) => {
    const { run, amended } = stage();
    expect((await run(film, body)).status).toBe(200);
    expect(amended()).toMatchObject([{ reserveMicroUsd: findModel(film)?.maxPrice }]);
  });

  it("is not what stands in a text", async () => {
    const { run, amended } = stage();
    const prompt = JSON.stringify(String.raw`"duration":15,"n" : 9 \" {"a":1,"a":2}`);
    const body = `{"input":{"prompt":${prompt},"image":"${photo(300)}","duration":5,"notes":["\\"a\\":1","\\"a\\":1"]}}`;
    expect((await run(film, body)).status).toBe(200);
    expect(amended()).toMatchObject([{ reserveMicroUsd: 500_000 }]);
  });
});

it("the amendment says all that passed: length, ttl, webhook and digest", async () => {
  const { run, amended, admitted } = stage();
  const webhook = "https://hooks.example.org/done";
  const text = JSON.stringify({ webhook, policy: { ttl: 60_000 }, input: { prompt: "x", image: photo(300) } });
  expect((await run(film, text, { "Idempotency-Key": "once" })).status).toBe(200);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))).toHex();
  expect(amended()).toMatchObject([{ webhook, digest, ttlMs: 60_000, inputBytes: text.length }]);
  expect(admitted()).toMatchObject([{ webhook: undefined, hasNotice: true }]);
});

describe("an amendment that", () => {
  const body = { input: { prompt: "x", image: photo(1024) } };
  const refusal = { admitted: false, code: "QUOTA_EXCEEDED", detail: "usd-day", retryAfterSeconds: 60 } as const;

  it.each([
    ["is refused", refusal, "QUOTA_EXCEEDED"],
    ["is lost", undefined, "METER_UNAVAILABLE"],
  ] as const)("%s cuts the upload before its last byte, and is given back", async (_name, answer, code) => {
    let whole: boolean | undefined;
    const { tap, upstream, run } = stage();
    upstream.answer = (seen) => {
      whole = seen.body.endsWith("}}");
      return json({ id: "job-1", status: "IN_QUEUE" });
    };
    tap.lose = ({ name }: Heard) => (name === "amend" && !answer ? "question" : undefined);
    tap.instead = ({ name }) => (name === "amend" ? answer : undefined);
    await expectProblem(await run(film, body), code);
    expect(whole).not.toBe(true);
    expect(tap.names()).toEqual(["admit", "amend", "release"]);
  });
});
