// What the README and docs/ tell people to write, run from their own text: pages, the backend, the operator, a model. SDKs: test/clients.
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { createSluice } from "../../src/client/index.ts";
import { image as defineImage } from "../../src/models/define.ts";
import { prompt, seed } from "../../src/models/inputs.ts";
import { perImage } from "../../src/models/money.ts";
import { Server } from "../support/serve.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";
import { blocksUnder, runBlock } from "./support/readme.ts";

const image = "black-forest-labs-flux-1-schnell";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

const here = (code: string) => code.replace(/http:\/\/(localhost|127\.0\.0\.1):8787/g, server.url);
const block = (document: string, heading: string, language: string) =>
  blocksUnder(document, heading, language)[0] ?? "";

function shell(lines: string, env: Record<string, string> = {}) {
  const ran = spawnSync("bash", ["--norc", "-euo", "pipefail", "-c", lines], {
    env: { ...process.env, ...env },
    encoding: "utf8",
  });
  expect(ran.status, `${ran.stdout}\n${ran.stderr}`).toBe(0);
  return ran.stdout;
}

async function isPicture(url: string): Promise<boolean> {
  const response = await fetch(url);
  return response.ok && /^image\//.test(response.headers.get("Content-Type") ?? "");
}

describe("a first picture", () => {
  it("by curl is the README's own", async () => {
    const answer = shell(here(block("README.md", "A first picture", "sh")));
    const job = JSON.parse(answer) as { status: string; output: { image_url: string } };
    expect(job.status).toBe("COMPLETED");
    expect(await isPicture(job.output.image_url)).toBe(true);
    const made = Buffer.from(await (await fetch(job.output.image_url)).arrayBuffer());
    expect(made.equals(readFileSync(join(root, "docs/lighthouse.jpg")))).toBe(true);
  });

  it.each([
    ["README.md", block("README.md", "A first picture", "js")],
    ["docs/clients.md", block("docs/clients.md", "A page, with `fetch`", "js")],
  ])("of the page in %s is shown, in twenty lines", async (_, lines) => {
    expect(lines.trim().split("\n").length).toBeLessThanOrEqual(20);
    const shown = { src: "" };
    await runBlock(here(lines), {
      createSluice,
      document: { querySelector: (name: string) => (name === "img" ? shown : undefined) },
    });
    expect(await isPicture(shown.src)).toBe(true);
  });
});

describe("the backend", () => {
  type Backend = {
    tokenFor: (user: string) => Promise<string>;
    isOurs: (headers: IncomingHttpHeaders, body: string, secret: string) => boolean;
  };

  it("mints a user's token, and knows the gateway's webhooks from others", async () => {
    const env = { GATEWAY_URL: server.url, APP_SECRET: testSettings.APP_SECRET };
    const { tokenFor, isOurs } = (await runBlock(block("docs/clients.md", "A backend", "js"), {
      process: { env },
      createHmac,
    })) as unknown as Backend;
    const app = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
    const asked = await fetch(`${server.url}/tokens/webhook-secret`, { headers: app });
    const { secret } = (await asked.json()) as { secret: string };

    const received = Promise.withResolvers<{ headers: IncomingHttpHeaders; body: string }>();
    const receiver = createServer((request, response) => {
      let body = "";
      request.on("data", (data) => {
        body += data;
      });
      request.on("end", () => {
        response.end();
        received.resolve({ headers: request.headers, body });
      });
    });
    const webhook = `${await listenLocally(receiver)}/done`;
    try {
      const headers = { Authorization: `Bearer ${await tokenFor("ada")}` };
      const body = JSON.stringify({ input: { prompt: "a lighthouse" }, webhook });
      const submitted = await fetch(`${server.url}/v2/${image}/run`, { method: "POST", headers, body });
      const { id } = (await submitted.json()) as { id: string };
      const told = await received.promise;
      expect(JSON.parse(told.body)).toMatchObject({ id, status: "COMPLETED" });
      expect(isOurs(told.headers, told.body, secret)).toBe(true);
      expect(isOurs(told.headers, `${told.body} `, secret)).toBe(false);
      expect(isOurs({ ...told.headers, "webhook-timestamp": "1" }, told.body, secret)).toBe(false);
      expect(isOurs(told.headers, told.body, `${secret.slice(0, -4)}AAA=`)).toBe(false);
    } finally {
      receiver.close();
    }
  });
});

it("the operator's lines work as they stand", () => {
  const answers = shell(block("docs/quotas-and-money.md", "What the operator can do", "sh"), {
    URL: server.url,
    ADMIN_TOKEN: testSettings.ADMIN_TOKEN,
  });
  expect(answers).toContain(`"plan":"pro"`);
  expect(answers).not.toContain("urn:sluice:error");
});

it("the example of a model is one", () => {
  const lines = block("docs/architecture.md", "A model", "ts");
  const names = { image: defineImage, perImage, prompt, seed };
  const model = new Function(...Object.keys(names), `return ${lines}`)(...Object.values(names));
  expect(model).toMatchObject({
    id: "my-model",
    kind: "image",
    output: "image_url",
    reuse: "seeded",
    maxPrice: 10_000,
  });
});
