// The SDKs that the README and docs/clients.md point at the gateway, from their own text.
import OpenAI from "openai";
import runpodSdk from "runpod-sdk";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mint } from "../e2e/support/faces.ts";
import { blocksUnder, runBlock } from "../e2e/support/readme.ts";
import { Server } from "../support/serve.ts";

interface Clients {
  readonly flux: { runSync: (request: object) => Promise<unknown> };
  readonly client: OpenAI;
}

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

it.each([
  ["README.md", blocksUnder("README.md", "A first picture", "js")[1]],
  ["docs/clients.md", blocksUnder("docs/clients.md", "SDKs", "js")[0]],
])("the SDKs of %s answer", async (_, lines = "") => {
  const code = `${lines}\nexport function clients() { return { flux, client }; }`;
  const names = { runpodSdk, OpenAI, url: server.url, token: await mint(server, "ada") };
  const { clients } = (await runBlock(code, names)) as { clients: () => Clients };
  const { flux, client } = clients();
  expect(await flux.runSync({ input: { prompt: "a lighthouse", seed: 7 } })).toMatchObject({ status: "COMPLETED" });
  const messages = [{ role: "user" as const, content: "Say something." }];
  const chat = await client.chat.completions.create({ model: "gpt-oss-120b", messages });
  expect(chat.choices[0]?.message.content).toMatch(/\S/);
});
