// Clients of the management interface: through the front door, every answer checked against the schema of its operation.
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { app } from "../../../src/app.ts";
import type { ErrorCode } from "../../../src/errors.ts";
import { origin } from "../../support/front-door.ts";
import { type Schema, type Schemas, schemaFaults } from "../../support/json-schema.ts";
import contract from "./contract.json";

export const keys = {
  north: "key-of-the-account-north-0123456789abc",
  south: "key-of-the-account-south-0123456789abc",
};
export type AccountName = keyof typeof keys;
const settings = { ...env, PLATFORM_API_KEY: `north=${keys.north},south=${keys.south}` };

export type Json = Record<string, unknown> & { readonly id: string };

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: unknown;
}

/** Any request, as an account. */
export async function send(as: AccountName | undefined, method: string, path: string, body?: unknown): Promise<Answer> {
  const request = new Request(`${origin}/platform${path}`, {
    method,
    ...(as && { headers: { Authorization: `Bearer ${keys[as]}` } }),
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const context = createExecutionContext();
  const response = await app.fetch(request, settings, context);
  const text = await response.text();
  await waitOnExecutionContext(context);
  if (text !== "") expect(response.headers.get("Content-Type")).toMatch(/^application\/json\b/);
  return { status: response.status, text, json: text === "" ? undefined : JSON.parse(text) };
}

interface ContractOperation {
  readonly status: number;
  readonly answer?: Schema;
}
const operations = Object.entries(contract.operations as unknown as Record<string, ContractOperation>);
const contractSchemas = contract.schemas as unknown as Schemas;

/** The contract's operation that a request is; ids stand for `{…}`. */
function operationOf(method: string, path: string): readonly [string, ContractOperation] {
  const plain = path.split("?")[0] ?? "";
  const found = operations.filter(([name]) => {
    const [verb, template = ""] = name.split(" ");
    return verb === method && new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(plain);
  });
  const [first] = found.sort(([left], [right]) => left.split("{").length - right.split("{").length);
  if (!first) throw new Error(`the contract has no ${method} ${path}`);
  return first;
}

interface OwnDocument {
  readonly paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, { schema: Schema }> }> }>
  >;
  readonly components: { readonly schemas: Schemas };
}
let document: OwnDocument | undefined;

export async function ownDocument(): Promise<OwnDocument> {
  document ??= (await send(undefined, "GET", "/v1/openapi.json")).json as OwnDocument;
  return document;
}

/** A call that must be answered as the contract and as our own document say. */
export async function ask<T = Json>(as: AccountName, method: string, path: string, body?: unknown): Promise<T> {
  const { status, json, text } = await send(as, method, `/v1${path}`, body);
  const [name, { status: expected, answer }] = operationOf(method, path);
  expect(`${name} ${status} ${status === expected ? "" : text}`).toBe(`${name} ${expected} `);
  if (answer) expect(schemaFaults(json, answer, contractSchemas), name).toEqual([]);
  if (expected === 204) expect(text).toBe("");
  const [, template = ""] = name.split(" ");
  const { paths, components } = await ownDocument();
  const own = paths[template]?.[method.toLowerCase()]?.responses[String(status)];
  expect(own, `${name} in our document`).toBeDefined();
  const schema = own?.content?.["application/json"]?.schema;
  if (schema) expect(schemaFaults(json, schema, components.schemas), `${name} in our document`).toEqual([]);
  return json as T;
}

/** A call that must be refused; answers what the refusal says. */
export async function refused(
  as: AccountName | undefined,
  code: ErrorCode,
  method: string,
  path: string,
  body?: unknown,
): Promise<string> {
  const { status, json } = await send(as, method, `/v1${path}`, body);
  expect(json).toMatchObject({ code, status, message: expect.stringMatching(/\S/) });
  const { message, detail, error } = json as Record<"message" | "detail" | "error", string>;
  expect([detail, error]).toEqual([message, message]);
  return message;
}

/** What the tests begin with, each valid by itself. */
export const valid = {
  template: { name: "trainer", imageName: "example.com/trainer:1" },
  volume: { name: "data", size: 10, dataCenterId: "EU-RO-1" },
  auth: { name: "registry", username: "robot", password: "correct horse battery staple" },
};

let count = 0;
export const template = (as: AccountName, more: object = {}) =>
  ask(as, "POST", "/templates", { ...valid.template, name: `template ${++count}`, ...more });
export const volume = (as: AccountName, more: object = {}) =>
  ask(as, "POST", "/networkvolumes", { ...valid.volume, ...more });
export const auth = (as: AccountName, more: object = {}) =>
  ask(as, "POST", "/containerregistryauth", { ...valid.auth, name: `auth ${++count}`, ...more });
export const pod = (as: AccountName, more: object = {}) =>
  ask(as, "POST", "/pods", { imageName: "example.com/pod:1", ...more });
export const endpoint = async (as: AccountName, more: object = {}) =>
  ask(as, "POST", "/endpoints", {
    ...("templateId" in more ? {} : { templateId: (await template(as, { isServerless: true })).id }),
    ...more,
  });
export const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id).sort();
