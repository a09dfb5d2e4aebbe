// The document tells of every route that is mounted, and of no other; and it is one that tools can read.
/// <reference types="vite/types/importMeta.d.ts" />
import { describe, expect, it } from "vitest";
import manifest from "../package.json";
import { app, routes } from "../src/app.ts";
import { operationNames } from "../src/gateway/identity/operations.ts";
import { call } from "./support/front-door.ts";

interface Operation {
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: object }[];
  readonly responses: Record<string, { description: string; content?: Record<string, { schema: object }> }>;
}
interface Document {
  readonly openapi: string;
  readonly info: { title: string; version: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, object>; securitySchemes: object };
}

const readDocument = async () => (await call("GET", "/openapi.json")).json<Document>();
const methods = ["get", "post", "put", "patch", "delete"];

/** Hono writes `/models/:model{[a-z]+}`, OpenAPI `/models/{model}`. Middleware is mounted for every method and is no route. */
function mountedRoutes(): string[] {
  const routes = app.routes.filter(({ method }) => method !== "ALL");
  return routes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(\{[^}]*\})?/g, "{$1}")}`);
}

const operationsOf = ({ paths }: Document) =>
  Object.entries(paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, operation]) => ({ path, method, operation })),
  );

/** Every `$ref` of a value, at any depth. */
function refsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "$ref" ? [String(inner)] : refsIn(inner)));
}

describe("/openapi.json", () => {
  it("tells of every mounted route, and of no other", async () => {
    const told = operationsOf(await readDocument()).map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    expect(told.sort()).toEqual([...new Set(mountedRoutes())].sort());
    expect(told).toContain("GET /healthz");
  });

  it("is an OpenAPI 3.1 document of this version", async () => {
    const { openapi, info, components } = await readDocument();
    expect(openapi).toBe("3.1.0");
    expect(info).toEqual({ title: "Sluice", version: manifest.version });
    expect(components.securitySchemes).toEqual({ bearer: { type: "http", scheme: "bearer" } });
  });

  it("points only at schemas that it carries", async () => {
    const document = await readDocument();
    const refs = refsIn(document);
    expect(refs.length).toBeGreaterThan(0);
    const known = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect(refs.filter((ref) => !known.includes(ref))).toEqual([]);
  });

  it("describes each operation whole: its parameters, its answer, its refusals", async () => {
    for (const { path, method, operation } of operationsOf(await readDocument())) {
      expect(methods).toContain(method);
      expect(operation.summary, path).toMatch(/\S/);
      const named = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
      expect(named).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      const statuses = Object.keys(operation.responses);
      expect(
        statuses.some((status) => status.startsWith("2")),
        `${method} ${path}`,
      ).toBe(true);
      expect(statuses).toContain("500");
      for (const [status, { content }] of Object.entries(operation.responses)) {
        if (Number(status) >= 400) {
          expect(content).toEqual({ "application/json": { schema: { $ref: "#/components/schemas/Problem" } } });
        }
      }
    }
  });
});

describe("docs/clients.md", () => {
  const [text = ""] = Object.values(
    import.meta.glob<string>("../docs/clients.md", { query: "?raw", import: "default", eager: true }),
  );

  it("lists every operation that a token may be for, and no other", () => {
    const [, listed = ""] = /\n`operations` are ([^;]*);/.exec(text) ?? [];
    expect([...listed.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name)).toEqual([...operationNames]);
  });

  it("names every code that an app or its users may be refused with", () => {
    const theirs = routes
      .map(({ operation }) => operation)
      .filter(({ access }) => ["public", "user", "app"].includes(access));
    const codes = new Set(theirs.flatMap(({ errors = [] }) => errors));
    expect(codes).toContain("MODEL_DISABLED");
    expect([...codes].filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
  });
});
