// How an operation becomes a part of the OpenAPI document.
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { waitQuerySchema } from "../../src/contract/job-request.ts";
import { type Operation, openApi } from "../../src/contract/operation.ts";

const leaf = z.object({ name: z.string() }).meta({ id: "Leaf" });
const tree = z.object({ leaves: z.array(leaf) }).meta({ id: "Tree" });

function write(change: Partial<Operation>) {
  const operation = { method: "get", path: "/x", summary: "X", access: "public", ...change } satisfies Operation;
  const document = openApi([operation], { title: "T", version: "1" });
  const written = document.paths[operation.path]?.[operation.method] as Record<string, unknown>;
  return { document, written };
}

describe("an operation in the document", () => {
  it("names the parameters of its path and of its query", () => {
    const { written } = write({ path: "/v/{model}/status/{job}", query: waitQuerySchema });
    expect(written["parameters"]).toEqual([
      { name: "model", in: "path", required: true, schema: { type: "string" } },
      { name: "job", in: "path", required: true, schema: { type: "string" } },
      { name: "wait", in: "query", required: false, schema: expect.objectContaining({ type: "string" }) },
    ]);
  });

  it("says that it wants a key, unless it is public", () => {
    expect(write({}).written["security"]).toEqual([]);
    expect(write({ access: "user" }).written["security"]).toEqual([{ bearer: [] }]);
  });

  it("points at named schemas, at any depth, and names each once", () => {
    const { document, written } = write({ method: "post", body: leaf, answer: tree });
    expect(written["requestBody"]).toEqual({
      required: true,
      content: { "application/json": { schema: { $ref: "#/components/schemas/Leaf" } } },
    });
    expect(written).toHaveProperty(["responses", "200", "content", "application/json", "schema"], {
      $ref: "#/components/schemas/Tree",
    });
    expect(Object.keys(document.components.schemas).sort()).toEqual(["Leaf", "Problem", "Tree"]);
    expect(document.components.schemas["Tree"]).toHaveProperty(["properties", "leaves", "items"], {
      $ref: "#/components/schemas/Leaf",
    });
    expect(JSON.stringify(document)).not.toMatch(/\$defs|"\$schema"/);
  });

  it("answers with another status and type where it says so", () => {
    const { written } = write({ status: 201, contentType: "text/event-stream", answer: z.string() });
    expect(written).toHaveProperty(["responses", "201", "content", "text/event-stream", "schema", "type"], "string");
  });

  it("lists its refusals by status, each with its codes", () => {
    const { written } = write({ errors: ["MODEL_NOT_FOUND", "JOB_NOT_FOUND", "INVALID_REQUEST"] });
    expect(written).toHaveProperty("responses.404.description", "MODEL_NOT_FOUND, JOB_NOT_FOUND");
    expect(written).toHaveProperty("responses.400.description", "INVALID_REQUEST");
    expect(written).toHaveProperty("responses.500.description", "INTERNAL, MISCONFIGURED");
  });
});
