// The state table, every cell: each state of a job, each thing that can happen to it, and what is then.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { JobState } from "../../src/contract/states.ts";
import type { ErrorCode } from "../../src/errors.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { expectProblem } from "../support/problems.ts";
import { type Endpoint, endpoint, noon, pass, setTime } from "./support/endpoint.ts";

const minute = 60_000;
/** Longer than a silent worker is waited for. */
const executionTimeout = 40_000;
const retention = 30 * minute;
const ttl = 24 * 60 * minute;

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** `gone`: its result was forgotten. `IN_PROGRESS again`: a worker was lost before. */
type Start = JobState | "IN_PROGRESS again" | "gone";

const bring: Record<Start, (e: Endpoint, id: string) => Promise<unknown>> = {
  IN_QUEUE: async () => {},
  IN_PROGRESS: (e) => e.take(),
  "IN_PROGRESS again": async (e) => {
    await e.take("w0");
    pass(30_000);
    await e.ring();
    await e.take();
  },
  COMPLETED: async (e, id) => {
    await e.take();
    await e.done(id);
  },
  FAILED: async (e, id) => {
    await e.take();
    await e.done(id, { output: "half", error: "broke" });
  },
  CANCELLED: (e, id) => e.post(`cancel/${id}`),
  TIMED_OUT: async (e, id) => {
    await e.take();
    pass(executionTimeout / 2);
    await e.ping("w1", id);
    pass(executionTimeout / 2);
    await e.ring();
  },
  gone: async (e, id) => {
    await bring.COMPLETED(e, id);
    pass(retention);
    await e.ring();
  },
};

/** A refusal's code, or what a part of the answer says. */
type Answer = ErrorCode | object | undefined;
interface Act {
  readonly act: (e: Endpoint, id: string) => Promise<Response | undefined>;
  /** By state: what is answered, and the state afterwards. */
  readonly cells: Record<Start, readonly [Answer, Start]>;
}

const cancelled = { status: "CANCELLED" };
const unheld = "JOB_NOT_HELD" as const;
const gone = ["JOB_NOT_FOUND", "gone"] as const;
/** Nobody asked, so nothing is answered. */
const stays = (state: Start) => [undefined, state] as const;
const timeIsOver = async (e: Endpoint, ms: number, workingOn: string[] = []) => {
  pass(ms / 2);
  if (workingOn.length > 0) await e.ping("w1", ...workingOn);
  pass(ms / 2);
  await e.ring();
  return undefined;
};

const acts: Record<string, Act> = {
  status: {
    act: (e, id) => e.send("GET", `status/${id}`),
    cells: {
      IN_QUEUE: [{ status: "IN_QUEUE" }, "IN_QUEUE"],
      IN_PROGRESS: [{ status: "IN_PROGRESS", workerId: "w1" }, "IN_PROGRESS"],
      "IN_PROGRESS again": [{ status: "IN_PROGRESS", retries: 1 }, "IN_PROGRESS again"],
      COMPLETED: [{ status: "COMPLETED", output: "made" }, "COMPLETED"],
      FAILED: [{ status: "FAILED", output: "half", error: "broke" }, "FAILED"],
      CANCELLED: [cancelled, "CANCELLED"],
      TIMED_OUT: [{ status: "TIMED_OUT", error: "executionTimeout exceeded" }, "TIMED_OUT"],
      gone,
    },
  },
  cancel: {
    act: (e, id) => e.send("POST", `cancel/${id}`),
    cells: {
      IN_QUEUE: [cancelled, "CANCELLED"],
      IN_PROGRESS: [cancelled, "CANCELLED"],
      "IN_PROGRESS again": [cancelled, "CANCELLED"],
      COMPLETED: [{ status: "COMPLETED" }, "COMPLETED"],
      FAILED: [{ status: "FAILED" }, "FAILED"],
      CANCELLED: [cancelled, "CANCELLED"],
      TIMED_OUT: [{ status: "TIMED_OUT" }, "TIMED_OUT"],
      gone,
    },
  },
  retry: {
    act: (e, id) => e.send("POST", `retry/${id}`),
    cells: {
      IN_QUEUE: ["NOT_RETRYABLE", "IN_QUEUE"],
      IN_PROGRESS: ["NOT_RETRYABLE", "IN_PROGRESS"],
      "IN_PROGRESS again": ["NOT_RETRYABLE", "IN_PROGRESS again"],
      COMPLETED: ["NOT_RETRYABLE", "COMPLETED"],
      FAILED: [{ status: "IN_QUEUE" }, "IN_QUEUE"],
      CANCELLED: ["NOT_RETRYABLE", "CANCELLED"],
      TIMED_OUT: [{ status: "IN_QUEUE" }, "IN_QUEUE"],
      gone,
    },
  },
  "purge-queue": {
    act: (e) => e.send("POST", "purge-queue"),
    cells: {
      IN_QUEUE: [{ removed: 1, status: "completed" }, "gone"],
      IN_PROGRESS: [{ removed: 0 }, "IN_PROGRESS"],
      "IN_PROGRESS again": [{ removed: 0 }, "IN_PROGRESS again"],
      COMPLETED: [{ removed: 0 }, "COMPLETED"],
      FAILED: [{ removed: 0 }, "FAILED"],
      CANCELLED: [{ removed: 0 }, "CANCELLED"],
      TIMED_OUT: [{ removed: 0 }, "TIMED_OUT"],
      gone: [{ removed: 0 }, "gone"],
    },
  },
  take: {
    act: async (e, id) => Response.json({ taken: (await e.take("w2")).includes(id) }),
    cells: {
      IN_QUEUE: [{ taken: true }, "IN_PROGRESS"],
      IN_PROGRESS: [{ taken: false }, "IN_PROGRESS"],
      "IN_PROGRESS again": [{ taken: false }, "IN_PROGRESS again"],
      COMPLETED: [{ taken: false }, "COMPLETED"],
      FAILED: [{ taken: false }, "FAILED"],
      CANCELLED: [{ taken: false }, "CANCELLED"],
      TIMED_OUT: [{ taken: false }, "TIMED_OUT"],
      gone: [{ taken: false }, "gone"],
    },
  },
  "a result": {
    act: (e, id) => e.done(id),
    cells: {
      IN_QUEUE: [unheld, "IN_QUEUE"],
      IN_PROGRESS: [{ ok: true }, "COMPLETED"],
      "IN_PROGRESS again": [{ ok: true }, "COMPLETED"],
      COMPLETED: [unheld, "COMPLETED"],
      FAILED: [unheld, "FAILED"],
      CANCELLED: [unheld, "CANCELLED"],
      TIMED_OUT: [unheld, "TIMED_OUT"],
      gone,
    },
  },
  "a result of a worker that does not hold it": {
    act: (e, id) => e.done(id, { output: "stolen" }, "w9"),
    cells: {
      IN_QUEUE: [unheld, "IN_QUEUE"],
      IN_PROGRESS: [unheld, "IN_PROGRESS"],
      "IN_PROGRESS again": [unheld, "IN_PROGRESS again"],
      COMPLETED: [unheld, "COMPLETED"],
      FAILED: [unheld, "FAILED"],
      CANCELLED: [unheld, "CANCELLED"],
      TIMED_OUT: [unheld, "TIMED_OUT"],
      gone,
    },
  },
  "an error": {
    act: (e, id) => e.done(id, { error: '{"error_message":"broke"}' }),
    cells: {
      IN_QUEUE: [unheld, "IN_QUEUE"],
      IN_PROGRESS: [{ ok: true }, "FAILED"],
      "IN_PROGRESS again": [{ ok: true }, "FAILED"],
      COMPLETED: [unheld, "COMPLETED"],
      FAILED: [unheld, "FAILED"],
      CANCELLED: [unheld, "CANCELLED"],
      TIMED_OUT: [unheld, "TIMED_OUT"],
      gone,
    },
  },
  "a report of progress": {
    act: (e, id) => e.done(id, { status: "IN_PROGRESS", output: "half" }),
    cells: {
      IN_QUEUE: [unheld, "IN_QUEUE"],
      IN_PROGRESS: [{ ok: true }, "IN_PROGRESS"],
      "IN_PROGRESS again": [{ ok: true }, "IN_PROGRESS again"],
      COMPLETED: [unheld, "COMPLETED"],
      FAILED: [unheld, "FAILED"],
      CANCELLED: [unheld, "CANCELLED"],
      TIMED_OUT: [unheld, "TIMED_OUT"],
      gone,
    },
  },
  "a chunk": {
    act: (e, id) => e.chunk(id, "piece"),
    cells: {
      IN_QUEUE: [unheld, "IN_QUEUE"],
      IN_PROGRESS: [{ ok: true }, "IN_PROGRESS"],
      "IN_PROGRESS again": [{ ok: true }, "IN_PROGRESS again"],
      COMPLETED: [unheld, "COMPLETED"],
      FAILED: [unheld, "FAILED"],
      CANCELLED: [unheld, "CANCELLED"],
      TIMED_OUT: [unheld, "TIMED_OUT"],
      gone,
    },
  },
  "its worker left before the job reached it": {
    act: async (e, id) => void (await e.queue().giveBack("w1", [id])),
    cells: {
      IN_QUEUE: stays("IN_QUEUE"),
      IN_PROGRESS: [undefined, "IN_QUEUE"],
      "IN_PROGRESS again": [undefined, "IN_QUEUE"],
      COMPLETED: stays("COMPLETED"),
      FAILED: stays("FAILED"),
      CANCELLED: stays("CANCELLED"),
      TIMED_OUT: stays("TIMED_OUT"),
      gone: stays("gone"),
    },
  },
  "its worker is not heard of": {
    act: (e) => timeIsOver(e, 30_000),
    cells: {
      IN_QUEUE: stays("IN_QUEUE"),
      IN_PROGRESS: [undefined, "IN_QUEUE"],
      "IN_PROGRESS again": [undefined, "FAILED"],
      COMPLETED: stays("COMPLETED"),
      FAILED: stays("FAILED"),
      CANCELLED: stays("CANCELLED"),
      TIMED_OUT: stays("TIMED_OUT"),
      gone: stays("gone"),
    },
  },
  "the execution timeout passes": {
    act: (e, id) => timeIsOver(e, executionTimeout, [id]),
    cells: {
      IN_QUEUE: stays("IN_QUEUE"),
      IN_PROGRESS: [undefined, "TIMED_OUT"],
      "IN_PROGRESS again": [undefined, "TIMED_OUT"],
      COMPLETED: stays("COMPLETED"),
      FAILED: stays("FAILED"),
      CANCELLED: stays("CANCELLED"),
      TIMED_OUT: stays("TIMED_OUT"),
      gone: stays("gone"),
    },
  },
  "the retention passes": {
    act: (e) => timeIsOver(e, retention),
    cells: {
      IN_QUEUE: stays("IN_QUEUE"),
      IN_PROGRESS: [undefined, "TIMED_OUT"],
      "IN_PROGRESS again": [undefined, "TIMED_OUT"],
      COMPLETED: [undefined, "gone"],
      FAILED: [undefined, "gone"],
      CANCELLED: [undefined, "gone"],
      TIMED_OUT: [undefined, "gone"],
      gone: stays("gone"),
    },
  },
  "the ttl passes": {
    act: (e) => timeIsOver(e, ttl),
    cells: {
      IN_QUEUE: [undefined, "gone"],
      IN_PROGRESS: [undefined, "gone"],
      "IN_PROGRESS again": [undefined, "gone"],
      COMPLETED: [undefined, "gone"],
      FAILED: [undefined, "gone"],
      CANCELLED: [undefined, "gone"],
      TIMED_OUT: [undefined, "gone"],
      gone: stays("gone"),
    },
  },
  "a ttl that is over already": {
    act: async (e, id) => {
      pass(25_000);
      return e.send("GET", `status/${id}?ttl=20000`);
    },
    cells: {
      IN_QUEUE: gone,
      IN_PROGRESS: gone,
      "IN_PROGRESS again": gone,
      COMPLETED: gone,
      FAILED: gone,
      CANCELLED: gone,
      TIMED_OUT: gone,
      gone,
    },
  },
};

const cells = Object.entries(acts).flatMap(([name, { act, cells }]) =>
  Object.entries(cells).map(([from, [answer, to]]) => ({ name, act, from: from as Start, answer, to })),
);

describe("a job", () => {
  it.each(cells)("$from, $name: $to", async ({ act, from, answer, to }) => {
    const e = endpoint();
    const id = await e.submit({ input: {}, policy: { executionTimeout: executionTimeout } });
    await bring[from](e, id);
    const response = await act(e, id);
    if (typeof answer === "string") await expectProblem(response ?? Response.error(), answer);
    else if (answer) expect(await response?.json()).toMatchObject(answer);
    const after = await e.send("GET", `status/${id}`);
    if (to === "gone") await expectProblem(after, "JOB_NOT_FOUND");
    else expect(await after.json()).toMatchObject({ id, status: to.replace(" again", "") });
  });
});
