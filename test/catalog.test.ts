// The public catalog through the front door.
import { describe, expect, it } from "vitest";
import { models } from "../src/models/index.ts";
import { call } from "./support/front-door.ts";
import { expectProblem } from "./support/problems.ts";

interface Entry {
  readonly id: string;
}

describe("GET /models", () => {
  it("lists every model with its input, as each is told of alone", async () => {
    const response = await call("GET", "/models");
    expect(response.status).toBe(200);
    const listed = (await response.json<{ models: Entry[] }>()).models;
    const told = models.map(({ id, title, kind, price, pricing, output, reuse, openAiRoutes }) => {
      return { id, title, kind, price, pricing, output, reuse, openAiRoutes };
    });
    expect(listed).toEqual(told.map((entry) => ({ ...entry, input: expect.objectContaining({ type: "object" }) })));
    for (const entry of listed) {
      const alone = await call("GET", `/models/${entry.id}`);
      expect(alone.status).toBe(200);
      expect(await alone.json()).toEqual(entry);
    }
  });

  it.each([
    ["", true],
    ["https://models.example.com", false],
  ])("says whether answers are samples: with UPSTREAM_URL %j", async (UPSTREAM_URL, samples) => {
    const settings = { UPSTREAM_URL, UPSTREAM_API_KEY: "a-key-of-the-service-0123456789" };
    expect(await (await call("GET", "/models", { settings })).json()).toMatchObject({ samples });
  });

  it("needs no key", async () => {
    const response = await call("GET", "/models", { headers: { Authorization: "Bearer wrong" } });
    expect(response.status).toBe(200);
  });
});

describe("GET /models/:model", () => {
  it.each([
    ["an id that nobody gave", "no-such-model"],
    ["a name that every object has", "constructor"],
    ["its prototype", "__proto__"],
    ["a control character", "%00"],
    ["a very long id", "x".repeat(5000)],
  ])("is 404 for %s", async (_, id) => {
    await expectProblem(await call("GET", `/models/${id}`), "MODEL_NOT_FOUND");
  });
});
