// What every refusal must look like, whoever refuses.
import { expect } from "vitest";
import { type ErrorCode, errors } from "../../src/errors.ts";

/** Asserts the code, and all that goes with it: status, type, the superset of keys, the request id. Answers the body. */
export async function expectProblem(response: Response, code: ErrorCode): Promise<Record<string, unknown>> {
  const body = await readProblem(response);
  const { status, title } = errors[code];
  expect(body).toMatchObject({ code, title, status });
  expect(response.status).toBe(status);
  return body;
}

/** Asserts that this is a refusal in the superset shape, whichever it is. */
export async function readProblem(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get("Content-Type")).toMatch(/^application\/json\b/);
  const body = await response.json<Record<string, unknown>>();
  expect(body).toEqual({
    type: `urn:sluice:error:${body["code"]}`,
    title: expect.any(String),
    status: response.status,
    detail: expect.stringMatching(/\S/),
    error: body["detail"],
    code: expect.stringMatching(/^[A-Z_]+$/),
    requestId: response.headers.get("X-Request-Id"),
  });
  return body;
}
