// The one table of errors and its two renderings.
import { describe, expect, it } from "vitest";
import {
  asProblem,
  describeFaults,
  type ErrorCode,
  errors,
  Problem,
  renderOpenAiProblem,
  renderProblem,
} from "../src/errors.ts";
import { refuse } from "../src/http/refusals.ts";
import { readProblem } from "./support/problems.ts";

const codes = Object.keys(errors) as ErrorCode[];

describe("the table", () => {
  it.each(codes)("%s has a status of an error and a title", (code) => {
    const { status, title } = errors[code];
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(title).toMatch(/^[A-Z]/);
    expect(new Problem(code, "why").status).toBe(status);
  });

  it("gives one title to one status", () => {
    const titles = new Map(codes.map((code) => [errors[code].status, errors[code].title]));
    expect(codes.filter((code) => titles.get(errors[code].status) !== errors[code].title)).toEqual([]);
  });
});

describe("the superset", () => {
  it("says the same to whoever reads error, detail or title", () => {
    expect(renderProblem(new Problem("JOB_NOT_FOUND", "job not found"), "r-1")).toEqual({
      type: "urn:sluice:error:JOB_NOT_FOUND",
      title: "Not found",
      status: 404,
      detail: "job not found",
      error: "job not found",
      code: "JOB_NOT_FOUND",
      requestId: "r-1",
    });
  });

  it.each(codes)("%s is JSON with its status and the headers of its problem", async (code) => {
    const exchange = { requestId: "r-1", errorShape: "superset" } as const;
    const response = refuse(new Problem(code, "why", { "Retry-After": "3" }), exchange);
    expect(response.status).toBe(errors[code].status);
    expect(response.headers.get("Retry-After")).toBe("3");
    response.headers.set("X-Request-Id", "r-1");
    expect(await readProblem(response)).toMatchObject({ code });
  });

  it("has a message beside it for the clients of the management interface", async () => {
    const response = refuse(new Problem("NOT_FOUND", "why"), { requestId: "r-1", errorShape: "management" });
    expect(await response.json()).toMatchObject({ message: "why", error: "why", code: "NOT_FOUND" });
  });
});

describe("OpenAI's shape", () => {
  it.each<[ErrorCode, string]>([
    ["INVALID_REQUEST", "invalid_request_error"],
    ["UNAUTHORIZED", "authentication_error"],
    ["FORBIDDEN", "permission_error"],
    ["MODEL_NOT_FOUND", "invalid_request_error"],
    ["PAYLOAD_TOO_LARGE", "invalid_request_error"],
    ["INTERNAL", "server_error"],
    ["MISCONFIGURED", "server_error"],
  ])("%s is %s", (code, type) => {
    expect(renderOpenAiProblem(new Problem(code, "why"), "r-1")).toEqual({
      error: { message: "why", type, code, param: null, requestId: "r-1" },
    });
  });

  it("is what a caller under openai/ gets", async () => {
    const response = refuse(new Problem("UNAUTHORIZED", "why"), { requestId: "r-1", errorShape: "openai" });
    expect(response.status).toBe(401);
    expect(await response.json()).toHaveProperty("error.type", "authentication_error");
  });
});

describe("an unknown error", () => {
  it.each([new Error("key=hunter2"), new TypeError("hunter2"), "hunter2", { hunter2: true }, undefined, null])(
    "tells the caller nothing: %s",
    async (thrown) => {
      for (const errorShape of ["superset", "openai", "management"] as const) {
        const response = refuse(thrown, { requestId: "r-1", errorShape });
        expect(response.status).toBe(500);
        const body = await response.text();
        expect(body).not.toContain("hunter2");
        expect(body).toContain("r-1");
      }
      expect(asProblem(thrown).code).toBe("INTERNAL");
    },
  );
});

describe("the faults of a value", () => {
  it("are named by their path, or by where the value stood", () => {
    const faults = [
      { path: ["input", "sizes", 2], message: "too big" },
      { path: [], message: "expected object" },
    ];
    expect(describeFaults(faults)).toBe("input.sizes.2: too big; body: expected object");
    expect(describeFaults(faults.slice(1), "query")).toBe("query: expected object");
  });

  it("are told up to twenty", () => {
    const faults = Array.from({ length: 21 }, (_, at) => ({ path: [`f${at}`], message: "wrong" }));
    expect(describeFaults(faults).split("; ")).toHaveLength(20);
  });
});
