// A retried job that nobody follows: what the meter's alarm tells and keeps is of its last end, under the id its owner has.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { resultKey } from "../../../src/gateway/quota/kept-result.ts";
import { UserMeter } from "../../../src/index.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { stubOf } from "../quota/admissions.ts";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

const webhook = "https://app.example.org/told";
interface Told {
  readonly id: string;
  readonly status: string;
  readonly output?: object;
}

/** A job that failed, and was retried so often, by the id that its owner got or by that of its last retry in the list. */
async function retried(times: number, byList = false) {
  let truth: object = { status: "FAILED", error: "out of memory" };
  const upstream = new FakeUpstream(({ method }) => {
    if (method === "GET") return "gone" in truth ? json({ error: "gone" }, 404) : json({ id: "job-1", ...truth });
    return json({ id: "job-1", status: "IN_QUEUE" });
  });
  const { id } = await (await upstream.submit("run", { ...prompt, webhook })).json<Told>();
  const told: Told[] = [];
  const payer = stubOf(`user:user-${upstream.origin}`);
  await runInDurableObject(payer, (object, state) => {
    object.ask = new UserMeter(state, upstream.env).ask;
    object.send = async (request) => {
      told.push(await request.json<Told>());
      return new Response();
    };
  });
  const status = async (handle = id) => {
    const answer = await upstream.call("GET", `/v2/${model}/status/${handle}`);
    return (await answer.json()) as Told;
  };
  const listed = async () => {
    const answer = await upstream.call("GET", `/v2/${model}/requests`);
    return (await answer.json<{ requests: Told[] }>()).requests.map((job) => job.id);
  };
  for (let time = 0; time < times; time++) {
    expect((await status()).status).toBe("FAILED");
    const [newest = id] = byList ? await listed() : [id];
    expect((await upstream.call("POST", `/v2/${model}/retry/${newest}`)).status).toBe(200);
  }
  const ring = async (later: number) => {
    await runInDurableObject(payer, (object) => {
      object.clock = () => Date.now() + later;
    });
    await runDurableObjectAlarm(payer);
  };
  const end = (as: object) => {
    truth = as;
  };
  const retry = () => upstream.call("POST", `/v2/${model}/retry/${id}`);
  /** KV's next write waits until it is released; what comes after it does not. */
  const holdWrite = () => {
    const { IMAGES } = upstream.env;
    const put = IMAGES.put.bind(IMAGES);
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    vi.spyOn(IMAGES, "put").mockImplementationOnce(async (...written: Parameters<typeof put>) => {
      begun.resolve();
      await released.promise;
      return put(...written);
    });
    return { begun: begun.promise, release: released.resolve };
  };
  return { id, told, ring, end, status, listed, retry, payer, holdWrite };
}

describe("attack M10: a retried job that only the alarm asks about", () => {
  it.each([
    ["once", 1, false],
    ["three times", 3, false],
    ["by the ids of its retries", 2, true],
  ])(
    "tells its webhook of its last end, and keeps its result, under the first id: %s",
    async (_name, times, byList) => {
      const { id, told, ring, end, status, listed } = await retried(times, byList);
      end({ status: "COMPLETED", output: { cost: 0.5, text: "done" } });
      await ring(60_000);
      await ring(61_000);
      expect(told.map((one) => one.status)).toEqual([...new Array<string>(times).fill("FAILED"), "COMPLETED"]);
      expect([...new Set(told.map((one) => one.id))]).toEqual([id]);
      end({ gone: true });
      for (const handle of [id, ...(await listed()).slice(0, 1)]) {
        expect(await status(handle)).toMatchObject({ id: handle, status: "COMPLETED", output: { text: "done" } });
      }
    },
  );
});

describe("what the meter is told of a retried job by its owner's polls", () => {
  const watched = async (times: number) => {
    const job = await retried(times);
    const settles: string[] = [];
    const { settle } = UserMeter.prototype;
    vi.spyOn(UserMeter.prototype, "settle").mockImplementation(function (
      this: UserMeter,
      ...told: Parameters<typeof settle>
    ) {
      settles.push(told[0].status);
      return settle.apply(this, told);
    });
    return { ...job, settles };
  };

  it("fault: a kept end is told once and not by each poll, where the upstream has forgotten the job", async () => {
    const { end, ring, status, settles } = await watched(1);
    const done = { status: "COMPLETED", output: { cost: 0.5, text: "done" } };
    end(done);
    await ring(60_000);
    end({ gone: true });
    for (let poll = 0; poll < 4; poll++) expect(await status()).toMatchObject(done);
    expect(settles).toEqual(["COMPLETED"]);
  });

  it("fault: the retry's own failure is told where KV took the failure before it so slowly that it was retried meanwhile", async () => {
    const { status, retry, holdWrite, settles } = await watched(0);
    const write = holdWrite();
    const polled = status();
    await write.begun;
    expect((await retry()).status).toBe(200);
    write.release();
    await polled;
    expect(settles).toEqual(["FAILED"]);
    await scheduler.wait(5);
    expect(await status()).toMatchObject({ status: "FAILED" });
    expect(settles).toEqual(["FAILED", "FAILED"]);
  });
});

describe("fault: an end that was kept before a retry", () => {
  const gone = { code: "JOB_NOT_FOUND" };
  const hourMs = 60 * 60_000;

  it("is nobody's answer once the upstream has forgotten the retry", async () => {
    const { end, ring, status, retry } = await retried(0);
    await ring(hourMs / 2);
    end({ gone: true });
    expect(await status()).toMatchObject({ status: "FAILED" });
    end({ status: "FAILED" });
    expect((await retry()).status).toBe(200);
    end({ gone: true });
    expect(await status()).toMatchObject(gone);
    await ring(25 * hourMs);
    expect(await status()).toMatchObject({ status: "TIMED_OUT" });
  });

  it("is read nevertheless where the run made something, and nothing newer is known", async () => {
    const { end, ring, status, retry } = await retried(0);
    end({ status: "COMPLETED", output: { cost: 0.5, text: "done" } });
    await ring(hourMs / 2);
    expect((await retry()).status).toBe(200);
    end({ gone: true });
    expect(await status()).toMatchObject({ status: "COMPLETED", output: { text: "done" } });
  });

  it("fault of torture: does not hide the retry's result where KV takes it after that", async () => {
    const { end, ring, status, retry, holdWrite } = await retried(0);
    const write = holdWrite();
    const polled = status();
    await write.begun;
    expect((await retry()).status).toBe(200);
    end({ status: "COMPLETED", output: { cost: 0.5, text: "done" } });
    await ring(60_000);
    write.release();
    expect(await polled).toMatchObject({ status: "FAILED" });
    end({ gone: true });
    expect(await status()).toMatchObject({ status: "COMPLETED", output: { text: "done" } });
  });

  it("does not go before the retry's, which KV has not taken yet", async () => {
    const { id, end, ring, status, payer } = await retried(1);
    await env.IMAGES.put(resultKey(id.split(".")[1] ?? ""), JSON.stringify({ id, status: "FAILED" }));
    await runInDurableObject(payer, (object) => {
      const { IMAGES } = (object as unknown as { readonly env: Env }).env;
      vi.spyOn(IMAGES, "put").mockRejectedValue(new Error("KV PUT failed: 429 Too Many Requests"));
    });
    end({ status: "COMPLETED", output: { cost: 0.5, text: "done" } });
    await ring(hourMs / 2);
    end({ gone: true });
    expect(await status()).toMatchObject({ status: "COMPLETED", output: { text: "done" } });
  });
});
