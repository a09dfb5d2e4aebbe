// The job request at its bounds: each starts from a valid one and changes one thing.
import { describe, expect, it } from "vitest";
import type * as z from "zod";
import {
  jobRequestSchema,
  statusQuerySchema,
  streamQuerySchema,
  waitQuerySchema,
} from "../../src/contract/job-request.ts";

const valid = {
  input: { prompt: "a lighthouse" },
  webhook: "https://hooks.example.com/done",
  policy: { executionTimeout: 600_000, lowPriority: false, ttl: 86_400_000 },
  s3Config: { accessId: "id", accessSecret: "secret", bucketName: "bucket", endpointUrl: "https://s3.example.com" },
};
const sevenDaysMs = 604_800_000;

/** Where the faults lie; none where the value passes. */
function faultsOf(schema: z.ZodType, value: unknown): string[] {
  return schema.safeParse(value).error?.issues.map(({ path }) => path.join(".")) ?? [];
}
const withPolicy = (policy: object) => ({ ...valid, policy: { ...valid.policy, ...policy } });
const urlOf = (length: number) => "https://hooks.example.com/".padEnd(length, "x");

describe("a job request", () => {
  it.each<[string, unknown]>([
    ["with everything", valid],
    ["with an input alone", { input: {} }],
    [
      "with unknown keys everywhere",
      {
        ...valid,
        webhookV2: "https://hooks.example.com",
        timeout: 1,
        input: { anything: [1, { deep: null }] },
        policy: { ...valid.policy, priority: "high" },
        s3Config: { ...valid.s3Config, objectPath: "a/b" },
      },
    ],
    ["with an empty policy and an empty s3Config", { ...valid, policy: {}, s3Config: {} }],
    ["with the shortest executionTimeout", withPolicy({ executionTimeout: 5000 })],
    ["with the longest executionTimeout", withPolicy({ executionTimeout: sevenDaysMs })],
    ["with the shortest ttl", withPolicy({ ttl: 10_000 })],
    ["with the longest ttl", withPolicy({ ttl: sevenDaysMs })],
    ["with lowPriority", withPolicy({ lowPriority: true })],
    ["with an http webhook", { ...valid, webhook: "http://localhost:9000/hook" }],
    ["with the longest webhook", { ...valid, webhook: urlOf(2048) }],
    ["with the longest s3Config value", { ...valid, s3Config: { bucketName: "x".repeat(2048) } }],
  ])("%s passes, and nothing of it is lost", (_, value) => {
    expect(jobRequestSchema.parse(value)).toEqual(value);
  });

  it.each<[string, object, object]>([
    ["a webhook of null", { webhook: null }, { webhook: undefined }],
    ["an empty webhook", { webhook: "" }, { webhook: undefined }],
    ["a policy of null", { policy: null }, { policy: undefined }],
    ["an s3Config of null", { s3Config: null }, { s3Config: undefined }],
    ["a policy of nulls", { policy: { ttl: null, lowPriority: null, executionTimeout: null } }, { policy: {} }],
    ["an s3Config of nulls", { s3Config: { accessId: null, bucketName: "b" } }, { s3Config: { bucketName: "b" } }],
    ["a null of its own", { own: null }, {}],
    ["a null in the input", { input: { a: null } }, { input: { a: null } }],
  ])("with %s is as one without it", (_, change, read) => {
    const expected = Object.entries({ ...valid, ...read }).filter(([, value]) => value !== undefined);
    expect(Object.entries(jobRequestSchema.parse({ ...valid, ...change })).sort()).toEqual(expected.sort());
  });

  it.each<[string, unknown, string]>([
    ["no input", { ...valid, input: undefined }, "input"],
    ["an input of null", { ...valid, input: null }, "input"],
    ["an input that is a list", { ...valid, input: [] }, "input"],
    ["an input that is a string", { ...valid, input: "{}" }, "input"],
    ["a webhook that is no URL", { ...valid, webhook: "hooks" }, "webhook"],
    ["a webhook of another scheme", { ...valid, webhook: "ftp://hooks.example.com" }, "webhook"],
    ["a webhook that is a number", { ...valid, webhook: 1 }, "webhook"],
    ["a webhook one character too long", { ...valid, webhook: urlOf(2049) }, "webhook"],
    ["a policy that is a list", { ...valid, policy: [] }, "policy"],
    ["an executionTimeout one ms too short", withPolicy({ executionTimeout: 4999 }), "policy.executionTimeout"],
    [
      "an executionTimeout one ms too long",
      withPolicy({ executionTimeout: sevenDaysMs + 1 }),
      "policy.executionTimeout",
    ],
    ["an executionTimeout with a fraction", withPolicy({ executionTimeout: 5000.5 }), "policy.executionTimeout"],
    ["an executionTimeout in a string", withPolicy({ executionTimeout: "5000" }), "policy.executionTimeout"],
    ["a ttl one ms too short", withPolicy({ ttl: 9999 }), "policy.ttl"],
    ["a ttl one ms too long", withPolicy({ ttl: sevenDaysMs + 1 }), "policy.ttl"],
    ["a lowPriority that is a number", withPolicy({ lowPriority: 1 }), "policy.lowPriority"],
    ["an s3Config that is a string", { ...valid, s3Config: "bucket" }, "s3Config"],
    ["an accessId that is a number", { ...valid, s3Config: { accessId: 1 } }, "s3Config.accessId"],
    ["a bucketName that is a list", { ...valid, s3Config: { bucketName: [] } }, "s3Config.bucketName"],
    ["an endpointUrl too long", { ...valid, s3Config: { endpointUrl: urlOf(2049) } }, "s3Config.endpointUrl"],
  ])("with %s is refused at its path", (_, value, path) => {
    expect(faultsOf(jobRequestSchema, value)).toEqual([path]);
  });

  it.each([
    ["no URL", "hooks"],
    ["of another scheme", "ftp://hooks.example.com"],
    ["a number", 1],
    ["too long", urlOf(2049)],
  ])("with a webhook that is %s is told what one is", (_, webhook) => {
    const { error } = jobRequestSchema.safeParse({ ...valid, webhook });
    expect(error?.issues.map(({ message }) => message)).toEqual([
      "expected an http or https URL of at most 2048 characters",
    ]);
  });

  it.each([undefined, null, [], "text", 1])("that is %s is refused", (value) => {
    expect(faultsOf(jobRequestSchema, value)).toEqual([""]);
  });
});

describe("the query of the held operations", () => {
  const held = [
    ["runsync and status-sync", waitQuerySchema],
    ["stream", streamQuerySchema],
  ] as const;

  it.each(held)("%s: wait from 1000 to 300000", (_, schema) => {
    expect(schema.parse({ wait: "1000" })).toEqual({ wait: 1000 });
    expect(schema.parse({ wait: "300000" })).toEqual({ wait: 300_000 });
    expect(schema.parse({ another: "1" })).toEqual({});
    for (const wait of ["999", "300001", "", "1e4", "-1000", "1000.5", " 1000", "0x400", "soon", "9".repeat(16)]) {
      expect(faultsOf(schema, { wait }), wait).toContain("wait");
    }
  });

  it("stream: format is array or nothing", () => {
    expect(streamQuerySchema.parse({ format: "array" })).toEqual({ format: "array" });
    expect(faultsOf(streamQuerySchema, { format: "list" })).toEqual(["format"]);
  });

  it("status: ttl from 10 s to 7 days", () => {
    expect(statusQuerySchema.parse({ ttl: "10000" })).toEqual({ ttl: 10_000 });
    expect(statusQuerySchema.parse({ ttl: `${sevenDaysMs}` })).toEqual({ ttl: sevenDaysMs });
    for (const ttl of ["9999", `${sevenDaysMs + 1}`, "a day"]) {
      expect(faultsOf(statusQuerySchema, { ttl }), ttl).toContain("ttl");
    }
  });
});
