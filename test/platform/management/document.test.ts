// The document of the management interface: all that the contract's tables name, with what their clients send.
import { describe, expect, it } from "vitest";
import contract from "./contract.json";
import { ownDocument } from "./management-client.ts";

interface Described {
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: { $ref?: string; properties?: object } }>;
  };
  readonly responses: Record<string, unknown>;
}
interface Expected {
  readonly status: number;
  readonly query?: readonly string[];
  readonly body?: readonly string[];
}
const operations = Object.entries(contract.operations as unknown as Record<string, Expected>);

async function described(name: string): Promise<Described> {
  const [method = "", path = ""] = name.split(" ");
  const { paths } = await ownDocument();
  return paths[path]?.[method.toLowerCase()] as unknown as Described;
}

describe("/platform/v1/openapi.json", () => {
  it("carries the contract's version, where its paths begin, and its operations' names", async () => {
    const document = (await ownDocument()) as unknown as Record<string, unknown>;
    expect(document).toMatchObject({ info: { version: "0.1.0" }, servers: [{ url: "/platform/v1" }] });
    expect(JSON.stringify(document)).toContain('"operationId":"GetTemplate"');
  });

  it.each(operations)(
    "describes %s: its status, its query, its body",
    async (name, { status, query = [], body = [] }) => {
      const own = await described(name);
      expect(own, name).toBeDefined();
      expect(Object.keys(own.responses)).toContain(String(status));
      const asked = own.parameters.filter((parameter) => parameter.in === "query").map((parameter) => parameter.name);
      expect(asked).toEqual(expect.arrayContaining([...query]));
      const schema = own.requestBody?.content["application/json"]?.schema;
      const { components } = await ownDocument();
      const named = schema?.$ref ? components.schemas[schema.$ref.split("/").at(-1) ?? ""] : schema;
      expect(Object.keys((named as { properties?: object })?.properties ?? {})).toEqual(
        expect.arrayContaining([...body]),
      );
    },
  );
});
