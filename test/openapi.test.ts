// The document tells of every route that is mounted, and of no other; and it is one that tools can read.
/// <reference types="vite/types/importMeta.d.ts" />
import { afterEach, describe, expect, it, vi } from "vitest";
import manifest from "../package.json";
import { app, routes } from "../src/app.ts";
import { errors } from "../src/errors.ts";
import { operationNames } from "../src/gateway/identity/operations.ts";
import { isolate, send } from "./support/callers.ts";
import { emptyStorage } from "./support/empty-storage.ts";
import { call } from "./support/front-door.ts";
import { type Schema, type Schemas, schemaFaults } from "./support/json-schema.ts";
import { testSettings } from "./support/settings.ts";

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
  const routes = app.mounted.filter(({ method }) => method !== "ALL");
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
          const shape = path.includes("/openai/") ? "OpenAiError" : "Problem";
          expect(content).toEqual({ "application/json": { schema: { $ref: `#/components/schemas/${shape}` } } });
        }
      }
    }
  });
});

const text = "qwen3-32b-awq";
const image = "black-forest-labs-flux-1-schnell";
const chat = { messages: [{ role: "user", content: "hello" }], max_tokens: 8 };
const settings = { ENDPOINTS: "bare" };

describe("a real answer", () => {
  afterEach(emptyStorage);

  async function ask(key: string, method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { Authorization: `Bearer ${key}` };
    return call(method, path, { headers, settings, ...(body !== undefined && { body: JSON.stringify(body) }) });
  }

  async function token(): Promise<string> {
    const minted = await ask(testSettings.APP_SECRET, "POST", "/tokens", { user: "ada", plan: "unlimited" });
    return (await minted.json<{ token: string }>()).token;
  }

  /** What it says, once it is held against what the document says of it. */
  async function told(method: string, path: string, answering: Promise<Response>): Promise<unknown> {
    const { paths, components } = await readDocument();
    const response = await answering;
    const said = await response.text();
    const described = paths[path]?.[method.toLowerCase()]?.responses[response.status];
    expect(described, `${method} ${path}: ${response.status} ${said}`).toBeDefined();
    const type = response.headers.get("Content-Type")?.split(";")[0];
    if (said === "" && described?.content === undefined) return undefined;
    const schema = described?.content?.[type ?? ""]?.schema as Schema | undefined;
    expect(schema, `${method} ${path}: ${response.status} ${type}`).toBeDefined();
    const value = type === "application/json" ? JSON.parse(said) : said;
    expect(schemaFaults(value, schema ?? {}, components.schemas as Schemas)).toEqual([]);
    return value;
  }

  const openai = [
    ["the gateway", `/v2/${text}/openai/v1/chat/completions`, "/v2/{model}/openai/{route}", token],
    [
      "the platform",
      `/platform/v2/${text}/openai/v1/chat/completions`,
      "/platform/v2/{endpoint}/openai/{route}",
      async () => testSettings.PLATFORM_API_KEY,
    ],
  ] as const;
  it.each(openai)("of OpenAI's routes at %s is as the document says", async (_, path, described, keyOf) => {
    const key = await keyOf();
    const answers = [
      ["whole", key, chat, 200],
      ["streamed", key, { ...chat, stream: true }, 200],
      ["refused", key, [], 400],
      ["unauthorized", "nobody", chat, 401],
    ] as const;
    for (const [, as, body, status] of answers) {
      const answering = ask(as, "POST", path, body);
      await told("POST", described, answering);
      expect((await answering).status).toBe(status);
    }
  });

  const atEndpoint = "/platform/v2/{endpoint}";
  const taking = ["nothing", "ENDPOINT_NOT_FOUND", "RATE_LIMITED", "UNAVAILABLE"] as const;
  const [, ...pinging] = taking;
  const telling = ["JOB_NOT_FOUND", "JOB_NOT_HELD", "QUEUE_FULL", "UNAVAILABLE"] as const;
  const asking = ["ENDPOINT_NOT_FOUND", "RATE_LIMITED", "QUEUE_FULL", "UNAVAILABLE"] as const;
  it.each([
    ["GET", "job-take/w1", `${atEndpoint}/job-take/{worker}`, taking],
    ["GET", "job-take-batch/w1", `${atEndpoint}/job-take-batch/{worker}`, taking],
    ["GET", "job-stop/w1", `${atEndpoint}/job-stop/{worker}`, taking],
    ["GET", "ping/w1", `${atEndpoint}/ping/{worker}`, pinging],
    ["POST", "job-done/w1/abc", `${atEndpoint}/job-done/{worker}/{job}`, telling],
    ["POST", "job-stream/w1/abc", `${atEndpoint}/job-stream/{worker}/{job}`, telling],
    ["GET", "openai/v1/models", `${atEndpoint}/openai/{route}`, asking],
    ["POST", "openai/v1/completions", `${atEndpoint}/openai/{route}`, asking],
  ] as const)("of %s %s has the status of what the queue says, as the document does", async (...row) => {
    const [method, path, described, words] = row;
    vi.spyOn(console, "warn").mockReturnValue();
    for (const word of words) {
      const says = async () => {
        if (word === "UNAVAILABLE") throw Object.assign(new Error("overloaded"), { overloaded: true });
        return word === "nothing" ? [] : { refused: word, detail: "no" };
      };
      const queue = new Proxy({}, { get: () => says });
      const within = isolate({ ENDPOINTS: "bare", ENDPOINT_QUEUE: { getByName: () => queue } });
      const body = method === "POST" ? { output: 1 } : undefined;
      const answering = send(within, method, `/platform/v2/bare/${path}`, { key: testSettings.PLATFORM_API_KEY, body });
      await told(method, described, answering);
      expect((await answering).status).toBe(word === "nothing" ? 204 : errors[word].status);
    }
  });

  it.each([
    ["job-done/w1/abc", `${atEndpoint}/job-done/{worker}/{job}`],
    ["job-stream/w1/abc", `${atEndpoint}/job-stream/{worker}/{job}`],
    ["openai/v1/completions", `${atEndpoint}/openai/{route}`],
  ])("of POST %s has a status that the document names, whatever the body", async (path, described) => {
    for (const [status, body, headers] of [
      [400, "{", {}],
      [400, "[]", {}],
      [413, "{}", { "Content-Length": String(64 * 1024 * 1024) }],
      [415, "{}", { "Content-Encoding": "gzip" }],
    ] as const) {
      const within = isolate({ ENDPOINTS: "bare" });
      const sent = { key: testSettings.PLATFORM_API_KEY, body, headers };
      const answering = send(within, "POST", `/platform/v2/bare/${path}`, sent);
      await told("POST", described, answering);
      expect((await answering).status).toBe(status);
    }
  });

  it.each(["GET", "POST"])("of %s of what is no route of OpenAI's is 404, as the document says", async (method) => {
    const key = testSettings.PLATFORM_API_KEY;
    const answering = ask(key, method, `/platform/v2/${text}/openai/models`, method === "POST" ? chat : undefined);
    await told(method, `${atEndpoint}/openai/{route}`, answering);
    expect((await answering).status).toBe(404);
  });

  it("of the list of jobs has an id in each row, that of an OpenAI call, too", async () => {
    const key = await token();
    await (await ask(key, "POST", `/v2/${text}/openai/v1/chat/completions`, chat)).text();
    const list = await told("GET", "/v2/{model}/requests", ask(key, "GET", `/v2/${text}/requests`));
    expect(list).toMatchObject({ requests: [{ id: expect.stringMatching(/./) }], total: 1 });
  });

  it("of a stream is the object, or with format=array its items", async () => {
    const key = await token();
    const input = { prompt: "a cat", width: 256, height: 256 };
    const { id } = await (await ask(key, "POST", `/v2/${image}/runsync`, { input })).json<{ id: string }>();
    for (const [query, shape] of [
      ["", { stream: [] }],
      ["?format=array", []],
    ] as const) {
      const streaming = ask(key, "GET", `/v2/${image}/stream/${id}${query}`);
      expect(await told("GET", "/v2/{model}/stream/{job}", streaming)).toMatchObject(shape);
    }
  });

  it("of a cancel says id and status alone, of a job that has ended, too", async () => {
    const key = await token();
    for (const seed of [undefined, 7, 7]) {
      const input = { prompt: "a cat", width: 256, height: 256, ...(seed && { seed }) };
      const { id } = await (await ask(key, "POST", `/v2/${image}/runsync`, { input })).json<{ id: string }>();
      const cancelled = await told("POST", "/v2/{model}/cancel/{job}", ask(key, "POST", `/v2/${image}/cancel/${id}`));
      expect(cancelled).toEqual({ id, status: "COMPLETED" });
    }
  });

  it("of the management interface has a status that the document names", async () => {
    const operator = testSettings.ADMIN_TOKEN;
    const manage = (method: string, path: string, body?: unknown) =>
      told(method, "/v1/{path}", ask(operator, method, `/v1${path}`, body));
    const template = { name: "mine", imageName: "an/image" };
    const made = (await manage("POST", "/templates", template)) as { id: string };
    expect(await manage("POST", "/templates", template)).toMatchObject({ code: "NAME_TAKEN" });
    await manage("POST", "/pods", { name: "pod", imageName: "an/image" });
    expect(await manage("DELETE", `/templates/${made.id}`)).toBeUndefined();
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
