// What the job interface answers, as its clients need it.
import { describe, expect, it } from "vitest";
import {
  healthSchema,
  jobSchema,
  metricsSchema,
  purgedSchema,
  requestsSchema,
  streamSchema,
  submittedSchema,
} from "../../src/contract/job.ts";
import { isFinal, jobStates } from "../../src/contract/states.ts";

describe("the states", () => {
  it.each([
    ["IN_QUEUE", false],
    ["IN_PROGRESS", false],
    ["COMPLETED", true],
    ["FAILED", true],
    ["CANCELLED", true],
    ["TIMED_OUT", true],
    ["completed", false],
  ])("%s is final: %s", (state, expected) => {
    expect(isFinal(state)).toBe(expected);
  });

  it("are the contract's six", () => {
    expect([...jobStates].sort()).toEqual(["CANCELLED", "COMPLETED", "FAILED", "IN_PROGRESS", "IN_QUEUE", "TIMED_OUT"]);
  });
});

describe("the answers", () => {
  const job = { id: "j-1", status: "COMPLETED", output: { any: ["thing"] }, delayTime: 5, executionTime: 7 };
  const workers = { idle: 0, initializing: 0, ready: 1, running: 1, throttled: 0, unhealthy: 0 };
  const jobs = { completed: 1, failed: 0, inProgress: 0, inQueue: 0, retried: 0 };

  it.each([
    ["a submission", submittedSchema, { id: "j-1", status: "IN_QUEUE" }],
    ["a job", jobSchema, { ...job, workerId: "w-1", retries: 1, extra: true }],
    ["a failed job", jobSchema, { id: "j-1", status: "FAILED", error: "out of memory" }],
    ["a job whose output is null", jobSchema, { ...job, output: null }],
    ["a stream", streamSchema, { status: "IN_PROGRESS", stream: [{ output: "chunk", metrics: { running: 1 } }] }],
    ["a drained stream", streamSchema, { status: "COMPLETED", stream: [] }],
    ["health", healthSchema, { jobs, workers }],
    ["metrics", metricsSchema, { workers, readyWorkers: ["w-1"] }],
    ["a purge", purgedSchema, { removed: 2, status: "completed" }],
    ["requests", requestsSchema, { requests: [job], total: 1, offset: 0, limit: 10, hasMore: false }],
  ])("%s passes as it is", (_, schema, value) => {
    expect(schema.parse(value)).toEqual(value);
  });

  it.each([
    ["a job without an id", jobSchema, { ...job, id: undefined }],
    ["a job of a state that is none", jobSchema, { ...job, status: "DONE" }],
    ["an error that is no string", jobSchema, { ...job, error: { message: "no" } }],
    ["a delayTime below zero", jobSchema, { ...job, delayTime: -1 }],
    ["an executionTime with a fraction", jobSchema, { ...job, executionTime: 0.5 }],
    ["a bare array of chunks", streamSchema, [{ output: "chunk" }]],
    ["health without its workers", healthSchema, { jobs }],
    ["a purge that says COMPLETED", purgedSchema, { removed: 2, status: "COMPLETED" }],
  ])("%s is refused", (_, schema, value) => {
    expect(schema.safeParse(value).success).toBe(false);
  });
});
