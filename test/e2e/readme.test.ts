// What the README tells an app's developer to write, run from its own text: pages, the hook, the backend, the operator. Its SDKs: test/clients.
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";
import { Component, PageEvents } from "./support/browser.ts";
import { blocksUnder, runBlock } from "./support/readme.ts";

const image = "black-forest-labs-flux-1-schnell";
/** An endpoint without a worker: its jobs wait. */
const waiting = "waiting";
const patienceMs = 20_000;

let server: Server;
beforeAll(async () => {
  server = await Server.start({ settings: { ENDPOINTS: waiting } });
  const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
  const body = JSON.stringify({ passthrough: true, maxUsd: 0 });
  await fetch(`${server.url}/admin/models/${waiting}`, { method: "PUT", headers, body });
});
afterAll(() => server.stop());

const here = (code: string) => code.replace(/http:\/\/(localhost|127\.0\.0\.1):8787/g, server.url);
const block = (heading: string, language: string, which = 0) => here(blocksUnder(heading, language)[which] ?? "");

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

describe("a first call", () => {
  it("by curl makes a picture", async () => {
    const job = JSON.parse(shell(block("A first call", "sh"))) as { status: string; output: { image_url: string } };
    expect(job.status).toBe("COMPLETED");
    expect(await isPicture(job.output.image_url)).toBe(true);
  });

  it.each(["A first call", "A page, with `fetch`"])(
    "of the page under “%s” shows a picture, in twenty lines",
    async (heading) => {
      const code = block(heading, "js");
      expect(code.trim().split("\n").length).toBeLessThanOrEqual(20);
      const shown = { src: "" };
      await runBlock(code, { document: { querySelector: (name: string) => (name === "img" ? shown : undefined) } });
      expect(await isPicture(shown.src)).toBe(true);
    },
  );
});

async function mint(user: string): Promise<string> {
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = JSON.stringify({ user, plan: "unlimited" });
  const response = await fetch(`${server.url}/tokens`, { method: "POST", headers, body });
  return ((await response.json()) as { token: string }).token;
}

describe("the React hook", () => {
  type Shown = [job: { status?: string; output?: { image_url: string } }, run: (input: object) => Promise<void>];

  async function mounted(model: string): Promise<Component<Shown>> {
    const code = block("A React hook", "jsx");
    expect(code.trim().split("\n").length).toBeLessThanOrEqual(20);
    const token = await mint("ada");
    const component: Component<Shown> = new Component(() => useJob(server.url, model, token));
    const { useJob } = (await runBlock(code, { ...component.hooks, EventSource: PageEvents })) as {
      useJob: (...words: string[]) => Shown;
    };
    return component;
  }

  it("shows a job's end with its picture, and lets its events go", async () => {
    const component = await mounted(image);
    await component.shown[1]({ prompt: "a lighthouse at dusk" });
    const output = await eventually("the end", patienceMs, async () => {
      const [job] = component.shown;
      return job.status === "COMPLETED" && job.output;
    });
    expect(await isPicture(output.image_url)).toBe(true);
    expect(PageEvents.opened.at(-1)?.isClosed).toBe(true);
  });

  it("shows a job that waits, and leaves its events with the page", async () => {
    const component = await mounted(waiting);
    await component.shown[1]({});
    await eventually("its status", patienceMs, async () => component.shown[0].status === "IN_QUEUE");
    const events = PageEvents.opened.at(-1);
    expect(events?.isClosed).toBe(false);
    component.unmount();
    expect(events?.isClosed).toBe(true);
    await events?.ended;
  });

  it("says why a job was not taken", async () => {
    const component = await mounted(image);
    await expect(component.shown[1]({ prompt: 7 })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  });
});

describe("the backend", () => {
  type Backend = {
    tokenFor: (user: string) => Promise<string>;
    isOurs: (headers: IncomingHttpHeaders, body: string, secret: string) => boolean;
  };

  it("mints a user's token, and knows the gateway's webhooks from others", async () => {
    const env = { GATEWAY_URL: server.url, APP_SECRET: testSettings.APP_SECRET };
    const { tokenFor, isOurs } = (await runBlock(block("A backend", "js"), {
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
  const answers = shell(block("What the operator can do", "sh"), {
    URL: server.url,
    ADMIN_TOKEN: testSettings.ADMIN_TOKEN,
  });
  expect(answers).toContain(`"plan":"pro"`);
  expect(answers).not.toContain("urn:sluice:error");
});
