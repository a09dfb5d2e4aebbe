// Following a job: each state and chunk once and in order, through streams that are cut, silent, refused or too many.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSluice, type Listeners } from "../../src/client/index.ts";
import { broken, chunk, done, events, FakeGateway, json, refusal, status, type Told } from "./fake-gateway.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => void vi.useRealTimers());

const streamed = /GET \/v2\/painter\/events\//;
const asked = /GET \/v2\/painter\/status\//;

const gatewayOf = (...streams: (Response | Error)[]) =>
  new FakeGateway()
    .on(/POST \/v2\/painter\/run$/, () => json({ id: "job-1", status: "IN_QUEUE" }))
    .on(streamed, () => streams.shift() ?? refusal(404, "NOT_FOUND", "There is no such route."));

/** What the caller hears, and what comes of it. */
async function follow(gateway: FakeGateway, only: readonly (keyof Listeners)[] = ["onState", "onChunk", "onGap"]) {
  const sluice = createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });
  const heard: unknown[] = [];
  const all: Listeners = {
    onState: (state) => heard.push(state),
    onChunk: (piece) => heard.push({ piece }),
    onGap: () => heard.push("gap"),
    onProgress: (progress) => heard.push({ progress }),
  };
  const listeners = Object.fromEntries(only.map((name) => [name, all[name]]));
  const running = Promise.allSettled([sluice.subscribe("painter", {}, listeners)]);
  await vi.runAllTimersAsync();
  const [result] = await running;
  return { heard, result };
}

const working = [status("IN_QUEUE"), status("IN_PROGRESS"), chunk("a"), chunk("b")] satisfies Told[];
const ending = [chunk("c"), status("COMPLETED"), ["cost", { usd: 0.02 }], done()] satisfies Told[];
const finished = { status: "fulfilled", value: { id: "job-1", status: "COMPLETED", output: "made", cost: 0.02 } };
const whole = ["submitting", "IN_QUEUE", "IN_PROGRESS", { piece: "a" }, { piece: "b" }, { piece: "c" }, "COMPLETED"];

describe("a job's events", () => {
  it("are told as they come, with the job and its cost at the end", async () => {
    const { heard, result } = await follow(gatewayOf(events([...working, ...ending])));
    expect(heard).toEqual(whole);
    expect(result).toMatchObject(finished);
  });

  it("go on where the gateway wants to be asked anew, without a gap", async () => {
    const first = events([...working, ["retry", { afterMs: 1000 }]]);
    const second = events([status("IN_PROGRESS"), ...ending]);
    const { heard, result } = await follow(gatewayOf(first, second));
    expect(heard).toEqual(whole);
    expect(result).toMatchObject(finished);
  });

  it.each(["ends", "breaks"] as const)(
    "go on after a stream that %s, with no chunk twice, and tell of the gap",
    async (how) => {
      const { heard, result } = await follow(
        gatewayOf(events(working, how), events([status("IN_PROGRESS"), ...ending])),
      );
      expect(heard).toEqual([...whole.slice(0, 5), "gap", ...whole.slice(5)]);
      expect(result).toMatchObject(finished);
    },
  );

  it("go on after a stream that fell silent: the gateway says something every 15 seconds", async () => {
    const { heard, result } = await follow(gatewayOf(events(working, "stays"), events(ending)));
    expect(heard).toEqual([...whole.slice(0, 5), "gap", ...whole.slice(5)]);
    expect(result).toMatchObject(finished);
  });

  it("tell of a gap where a stream had begun and its answer never came", async () => {
    const { heard } = await follow(gatewayOf(broken(), events([...working, ...ending])));
    expect(heard).toEqual(["submitting", "gap", ...whole.slice(1)]);
  });

  it("are read whole, wherever the network cuts them", async () => {
    const text = await events([...working, chunk("ü\n\n"), ...ending]).text();
    const bytes = new TextEncoder().encode(`:\n\n${text}`);
    const body = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const { heard } = await follow(gatewayOf(new Response(body)));
    expect(heard).toEqual([...whole.slice(0, 5), { piece: "ü\n\n" }, ...whole.slice(5)]);
  });

  it("are searched for their ends once: one of 8 MB in small pieces takes as long as its bytes do", async () => {
    const large = "x".repeat(8 * 1024 * 1024);
    const bytes = new Uint8Array(await events([chunk(large), done()]).arrayBuffer());
    let from = 0;
    const body = new ReadableStream({
      pull(controller) {
        controller.enqueue(bytes.subarray(from, from + 2_048));
        from += 2_048;
        if (from >= bytes.length) controller.close();
      },
    });
    const { user } = process.cpuUsage();
    const { heard } = await follow(gatewayOf(new Response(body)), ["onChunk"]);
    expect((heard[0] as { piece: string }).piece.length).toBe(large.length);
    // Searched at each piece, it takes ten seconds and more.
    expect(process.cpuUsage().user - user).toBeLessThan(4_000_000);
  }, 30_000);

  it("tell of progress where somebody listens for it", async () => {
    const told = [status("IN_PROGRESS"), ["progress", { percent: 10 }], ["progress", { percent: 90 }]] satisfies Told[];
    const gateway = gatewayOf(events([...told, ...ending]));
    const { heard } = await follow(gateway, ["onProgress"]);
    expect(heard).toEqual([{ progress: { percent: 10 } }, { progress: { percent: 90 } }]);
    expect(gateway.calls(streamed)[0]?.path).toBe("/v2/painter/events/job-1?progress=true");
    const unheard = gatewayOf(events(ending));
    await follow(unheard);
    expect(unheard.calls(streamed)[0]?.path).toBe("/v2/painter/events/job-1");
  });

  it.each([
    ["FAILED", "the prompt asked for a failure", "JOB_FAILED", "the prompt asked for a failure"],
    ["CANCELLED", undefined, "JOB_CANCELLED", "The job is CANCELLED."],
    ["TIMED_OUT", undefined, "JOB_TIMED_OUT", "The job is TIMED_OUT."],
  ])("of a job that is %s end with its error, and nothing is asked again", async (state, error, code, message) => {
    const job = { id: "job-1", status: state, ...(error !== undefined && { error }) };
    const gateway = gatewayOf(events([status(state), done(job)]));
    const { heard, result } = await follow(gateway);
    expect(heard).toEqual(["submitting", state]);
    expect(result).toMatchObject({
      reason: { name: "SluiceError", code, message, job: { id: "job-1", status: state } },
    });
    expect(gateway.seen).toHaveLength(2);
  });
});

it("hands what a listener throws to the caller, and does not take it for a broken stream", async () => {
  const gateway = gatewayOf(events([...working, ...ending]));
  const sluice = createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });
  const onChunk = () => {
    throw new RangeError("mine");
  };
  await expect(sluice.subscribe("painter", {}, { onChunk })).rejects.toThrow("mine");
  expect(gateway.calls(streamed)).toHaveLength(1);
});

describe("where events do not come through", () => {
  const jobs = (...states: string[]) => {
    const answers = states.map((state) => json({ id: "job-1", status: state, output: "made" }, { "X-Cost": "0.02" }));
    return () => answers.shift();
  };

  it.each<[string, () => (Response | Error)[]]>([
    ["since they are refused", () => []],
    ["since something answers with a page", () => [new Response("<h1>hello</h1>"), new Response("<h1>hello</h1>")]],
    ["since no connection stands", () => [broken(), broken()]],
  ])("a job is asked about: %s", async (_name, streams) => {
    const gateway = gatewayOf(...streams()).on(asked, jobs("IN_QUEUE", "IN_PROGRESS", "COMPLETED"));
    const { heard, result } = await follow(gateway, ["onState"]);
    expect(heard).toEqual(["submitting", "IN_QUEUE", "IN_PROGRESS", "COMPLETED"]);
    expect(result).toMatchObject(finished);
  });

  it("a job is asked about where the answer to that never comes, and its connections are given up", async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const held = (_: unknown, signal: AbortSignal | undefined) => {
      signals.push(signal);
      return new Promise<never>(() => {});
    };
    const gateway = gatewayOf().on(asked, jobs("COMPLETED")).on(streamed, held);
    expect((await follow(gateway, ["onState"])).result).toMatchObject(finished);
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true]);
  });

  it("its chunks are asked for until none is left, each once", async () => {
    const polls = [
      { status: "IN_PROGRESS", stream: [{ output: "a" }, { output: "b" }] },
      { status: "IN_PROGRESS", stream: [] },
      { status: "COMPLETED", stream: [{ output: "c" }] },
      { status: "COMPLETED", stream: [] },
    ];
    const gateway = gatewayOf()
      .on(asked, jobs("IN_PROGRESS", "COMPLETED"))
      .on(/stream/, () => json(polls.shift()));
    const { heard, result } = await follow(gateway);
    expect(heard).toEqual(["submitting", { piece: "a" }, { piece: "b" }, "IN_PROGRESS", { piece: "c" }, "COMPLETED"]);
    expect(result).toMatchObject(finished);
    expect(polls).toEqual([]);
  });

  it("a chunk that came between the question for chunks and the one for the end is told", async () => {
    const polls = [
      { status: "IN_PROGRESS", stream: [] },
      { status: "COMPLETED", stream: [{ output: "late" }] },
      { status: "COMPLETED", stream: [] },
    ];
    const gateway = gatewayOf()
      .on(asked, jobs("COMPLETED", "COMPLETED"))
      .on(/stream/, () => json(polls.shift()));
    expect((await follow(gateway)).heard).toEqual(["submitting", "COMPLETED", { piece: "late" }]);
  });

  it("a lost answer with chunks is a gap, and the output is whole", async () => {
    const gateway = gatewayOf()
      .on(asked, jobs("COMPLETED"))
      .on(/stream/, broken);
    const { heard, result } = await follow(gateway);
    expect(heard).toEqual(["submitting", "gap", "COMPLETED"]);
    expect(result).toMatchObject(finished);
  });

  it("a tunnel of two minutes is waited out", async () => {
    const begun = Date.now();
    const inTunnel = () => (Date.now() - begun < 120_000 ? broken() : undefined);
    const gateway = gatewayOf(broken(), broken()).on(asked, jobs("COMPLETED")).on(asked, inTunnel);
    expect((await follow(gateway, [])).result).toMatchObject(finished);
  });

  it("a job that nobody knows is an error", async () => {
    const gateway = gatewayOf().on(asked, () => refusal(404, "JOB_NOT_FOUND", "job not found"));
    expect((await follow(gateway, [])).result).toMatchObject({ reason: { code: "JOB_NOT_FOUND", status: 404 } });
  });

  it("an error in the stream is no end: the job is asked about", async () => {
    const failing = () => events([status("IN_QUEUE"), ["error", { code: "UPSTREAM_DOWN", detail: "It is down." }]]);
    const gateway = gatewayOf(failing(), failing(), failing()).on(asked, jobs("COMPLETED"));
    const { result } = await follow(gateway, ["onState"]);
    expect(result).toMatchObject(finished);
    expect(gateway.calls(streamed).length).toBeLessThanOrEqual(4);
  });
});

it("holds two streams at once, and asks about the jobs beyond", async () => {
  let open = 0;
  let most = 0;
  const gateway = new FakeGateway()
    .on(/run$/, () => json({ id: "job-1", status: "IN_QUEUE" }))
    .on(asked, () => json({ id: "job-1", status: "COMPLETED", output: "made" }))
    .on(streamed, async () => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      open--;
      return events(ending);
    });
  const sluice = createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });
  const all = Promise.all(Array.from({ length: 50 }, () => sluice.run("painter", {})));
  await vi.runAllTimersAsync();
  expect(await all).toHaveLength(50);
  expect(most).toBe(2);
});

describe("a stream of chunks", () => {
  const open = (gateway: FakeGateway, signal?: AbortSignal) =>
    createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch }).stream("painter", {}, { signal });

  it("is an iterator that returns the job", async () => {
    const pieces = open(gatewayOf(events([...working, ...ending])));
    const seen: unknown[] = [];
    for (;;) {
      const { value, done: isOver } = await pieces.next();
      if (isOver) {
        expect(value).toMatchObject({ id: "job-1", output: "made" });
        break;
      }
      seen.push(value);
    }
    expect(seen).toEqual(["a", "b", "c"]);
  });

  it("throws where the job fails", async () => {
    const failed = done({ status: "FAILED", error: "no" });
    const read = async () => {
      const seen: unknown[] = [];
      for await (const piece of open(gatewayOf(events([chunk("a"), status("FAILED"), failed])))) seen.push(piece);
      return seen;
    };
    await expect(read()).rejects.toMatchObject({ code: "JOB_FAILED", message: "no" });
  });

  it("cancels the job of a reader who leaves, and no job that has ended", async () => {
    const cancelled = /POST \/v2\/painter\/cancel\/job-1/;
    const left = gatewayOf(events(working, "stays")).on(cancelled, () => json({}));
    for await (const piece of open(left)) if (piece === "a") break;
    await vi.waitFor(() => expect(left.calls(cancelled)).toHaveLength(1));
    const read = gatewayOf(events([...working, ...ending]));
    for await (const _ of open(read));
    expect(read.calls(cancelled)).toEqual([]);
  });
});
