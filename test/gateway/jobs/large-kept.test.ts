// Large answers that the meter's alarm asks for: they pass into KV and into the client's webhook, and nobody holds them.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { statusPoller } from "../../../src/gateway/jobs/poll-upstream.ts";
import { imagesOf } from "../../../src/gateway/media/images.ts";
import { resultKey } from "../../../src/gateway/quota/kept-result.ts";
import type { AskUpstream } from "../../../src/gateway/quota/upstream-poll.ts";
import { Breaker } from "../../../src/gateway/upstream/breaker.ts";
import { defaultTimes } from "../../../src/gateway/upstream/upstream.ts";
import { SecretSearch } from "../../../src/json/secret-search.ts";
import { configOf } from "../../support/callers.ts";
import { upstreamKey } from "../../support/canary.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { meterOf, noon, request, stubOf } from "../quota/admissions.ts";

const hook = "https://app.example.org/hook";
const picture = "é€A".repeat(650_000);
const answerOf = (id: string, change: object = {}) =>
  JSON.stringify({
    id,
    status: "COMPLETED",
    webhook: "https://gateway.example.com/hooks/x",
    output: { picture, cost: 0.001 },
    ...change,
  });
const stub = () => stubOf("user:ada");
const meter = () => meterOf("user:ada");
const kept = (admission: string) => env.IMAGES.get(resultKey(admission));
const isKept = async (admission: string) => (await kept(admission)) !== null;

let told: string[];
beforeEach(async () => {
  told = [];
  await runInDurableObject(stub(), (object) => {
    object.clock = () => noon;
  });
  for (const level of ["warn", "error"] as const) vi.spyOn(console, level).mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

function asking(answer: (id: string) => BodyInit): AskUpstream {
  const config = configOf();
  const send = async (url: string) =>
    new Response(answer(url.split("/").at(-1) ?? ""), { headers: { "Content-Type": "application/json" } });
  const upstream = {
    base: "https://models.example.com/v2",
    keys: [upstreamKey],
    keySearch: new SecretSearch([upstreamKey]),
    breaker: new Breaker(),
    payer: "user:ada",
    times: defaultTimes,
    send,
  };
  return statusPoller(config, imagesOf(config, env).links, upstream, config.publicUrl);
}

/** A job that nobody follows, when the alarm has asked for it. */
async function asked(answer: (id: string) => BodyInit, webhook?: string): Promise<string> {
  const job = request({ webhook });
  await meter().admit(job);
  await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
  await runInDurableObject(stub(), (object) => {
    object.clock = () => noon + 12 * 60_000;
    object.ask = asking(answer);
    object.send = async (notice) => {
      told.push(await notice.text());
      return new Response();
    };
  });
  await runDurableObjectAlarm(stub());
  return job.admission;
}

/** A webhook says which it is, as the contract's does. */
const toldOf = (text: string) => JSON.stringify({ ...JSON.parse(text), webhook: hook });
const status = async (admission: string) => (await meter().job(admission))?.status;

it("twelve answers of 4 MB at once: nothing is read of them that nobody has taken", async () => {
  let read = 0;
  const piece = new TextEncoder().encode(`"${"A".repeat(16 * 1024)}",`);
  const vast = () =>
    new ReadableStream({
      type: "bytes",
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"status":"COMPLETED","output":[')),
      pull(controller) {
        read += piece.byteLength;
        controller.enqueue(piece.slice());
      },
    });
  const ask = asking(vast);
  const taken = Array.from({ length: 12 }, (_, n) => {
    const begun = Promise.withResolvers<ReadableStream>();
    const keep = async (text: ReadableStream) => {
      begun.resolve(text);
      return false;
    };
    const { admission } = request();
    const job = {
      model: "flux",
      upstreamId: `job-${n}`,
      owner: "user:ada",
      admission,
      first: admission,
      isUnproven: false,
    };
    void ask(job, { turn: async () => {}, keep });
    return begun.promise;
  });
  const texts = await Promise.all(taken);
  // Each hands over a piece: more than that has not come.
  const readers = texts.map((text) => text.getReader());
  await Promise.all(readers.map((reader) => reader.read()));
  expect(read).toBeLessThan(12 * 1024 * 1024);
  await Promise.all(readers.map((reader) => reader.cancel()));
});

it("an answer of 4 MB is kept as its owner gets it, and told to the webhook", async () => {
  const admission = await asked(answerOf, hook);
  const text = (await kept(admission)) ?? "";
  const { id, output, webhook } = JSON.parse(text);
  expect(output.picture === picture).toBe(true);
  expect([id.startsWith("job-1."), webhook]).toEqual([true, undefined]);
  expect(await status(admission)).toBe("COMPLETED");
  await runDurableObjectAlarm(stub());
  expect(told.map((body) => body === toldOf(text))).toEqual([true]);
});

it("a job that goes on has nothing kept of its large answer", async () => {
  const admission = await asked((id) => answerOf(id, { status: "IN_PROGRESS" }), hook);
  expect([await isKept(admission), await status(admission)]).toEqual([false, "IN_PROGRESS"]);
});

it.each([
  ["says the key", (id: string) => answerOf(id, { output: { picture, said: upstreamKey } })],
  ["is broken", (id: string) => answerOf(id).slice(0, -2)],
])("a large answer that %s is kept nowhere, and ends nothing", async (_name, answer) => {
  const admission = await asked(answer, hook);
  expect(await isKept(admission)).toBe(false);
  expect((await meter().job(admission))?.endedAt).toBeNull();
});

it("of an answer above 4 MB all but its output is kept, and told", async () => {
  const admission = await asked((id) => answerOf(id, { more: picture }), hook);
  expect(JSON.parse((await kept(admission)) ?? "")).toEqual({ id: expect.any(String), status: "COMPLETED" });
  expect(await status(admission)).toBe("COMPLETED");
  await runDurableObjectAlarm(stub());
  expect(told).toEqual([toldOf((await kept(admission)) ?? "")]);
});

it("a large answer ends its job, and is told, where KV takes nothing", async () => {
  vi.spyOn(env.IMAGES, "put").mockRejectedValue(new Error("KV is down"));
  const admission = await asked(answerOf, hook);
  expect(await status(admission)).toBe("COMPLETED");
  await runDurableObjectAlarm(stub());
  expect(told.map((body) => JSON.parse(body).output.picture === picture)).toEqual([true]);
});
