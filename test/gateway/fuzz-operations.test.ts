// Every operation that the document names, with a key that opens it: whatever else is drawn, never a 500.
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { routes } from "../../src/app.ts";
import type { Operation } from "../../src/contract/operation.ts";
import { amount } from "../support/amount.ts";
import { isolate } from "../support/callers.ts";
import { nearly } from "../support/drawn-json.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { call } from "../support/front-door.ts";
import type { Schema, Schemas } from "../support/json-schema.ts";
import { testSettings } from "../support/settings.ts";
import { FakeUpstream, json, model, watchCanary } from "./jobs/fake-upstream.ts";

watchCanary();

interface Documented {
  readonly paths: Record<
    string,
    Record<
      string,
      { requestBody?: { content: Record<string, { schema: Schema }> }; parameters: { in: string; name: string }[] }
    >
  >;
  readonly components: { readonly schemas: Schemas };
}

const runs = amount(100);
/** Its answers are the upstream's, whatever is asked. */
const done = { id: "job-1", status: "COMPLETED", output: { cost: 0.001 }, stream: [] };

// What the operator's calls have switched off must not spare the others.
afterEach(emptyStorage);

let document: Documented;
beforeAll(async () => {
  document = await (await call("GET", "/openapi.json")).json<Documented>();
});

const wild = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.constantFrom("..", "%", "a/b", "x".repeat(3000)));
const encoded = wild.map((value) => encodeURIComponent(value.toWellFormed()));
const keys: Partial<Record<Operation["access"], string>> = {
  app: testSettings.APP_SECRET,
  operator: testSettings.ADMIN_TOKEN,
};

/** A gateway with a job, and what stands in a path where it is asked well. */
async function stage(path: string) {
  const upstream = new FakeUpstream(({ method }) => json(method === "POST" ? { ...done, status: "IN_QUEUE" } : done));
  const job = await upstream.job();
  await upstream.submit();
  const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
  const hook = webhook.split("/").at(-1) ?? "";
  const known = { model, job, hook, user: "ada", plan: "free", route: "v1/chat/completions", path: "endpoints" };
  // Beside a real upstream there is no management interface but a real one.
  const within = path.startsWith("/v1/") ? isolate() : upstream.env;
  return { upstream: Object.assign(upstream, { env: within }), known: new Map(Object.entries(known)) };
}

describe("whatever a client sends with a valid key", () => {
  it.each(routes.map(({ operation }) => [`${operation.method} ${operation.path}`, operation] as const))(
    "to %s gets no 500",
    async (_name, { method, path, access }) => {
      const { upstream, known } = await stage(path);
      const { requestBody, parameters } = document.paths[path]?.[method] ?? { parameters: [] };
      const schema = requestBody?.content["application/json"]?.schema;
      const body = schema ? nearly(schema, document.components.schemas) : fc.option(fc.jsonValue(), { nil: undefined });
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
      const place = (name: string) => fc.oneof({ weight: 3, arbitrary: fc.constant(known.get(name) ?? "x") }, encoded);
      const places = fc.tuple(...names.map(place));
      const asked = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
      const query = fc.dictionary(fc.constantFrom(...asked, "x"), fc.oneof(fc.integer().map(String), wild));
      await fc.assert(
        fc.asyncProperty(places, query, body, wild, fc.nat(5), async (filled, questions, drawn, text, which) => {
          const at = names.reduce((made, name, index) => made.replace(`{${name}}`, () => filled[index] ?? "x"), path);
          const search = new URLSearchParams(questions);
          const sent = which === 0 ? text : drawn;
          const key = keys[access];
          const init = {
            ...(key !== undefined && { key }),
            ...(method !== "get" && sent !== undefined && { body: sent }),
          };
          const response = await upstream.call(method.toUpperCase(), `${at}?${search}`, init);
          const answer = await response.text();
          expect([at, answer.slice(0, 300), response.status === 500]).toEqual([at, answer.slice(0, 300), false]);
          if (response.status === 401) expect(answer).toContain("TICKET_REFUSED");
          if (response.status >= 400) expect(() => JSON.parse(answer)).not.toThrow();
        }),
        { numRuns: runs },
      );
    },
  );
});
