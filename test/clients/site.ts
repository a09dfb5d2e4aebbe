// The pages as `npm start` serves them, in a real browser that notes every fault: errors of the console, exceptions, and
// what the policy refused. One browser for all tests of a file, and a visitor of their own for each.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { root } from "../../src/cli/wrangler.ts";
import { ScriptedWorker } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";
import { openChromium } from "./chromium.ts";

/** A busy machine takes its time to draw a picture. */
export const patience = { timeout: 45_000 };
export const cheapest = "black-forest-labs-flux-1-schnell";
export const picture = {
  name: "picture.jpg",
  mimeType: "image/jpeg",
  buffer: readFileSync(join(root, "docs/lighthouse.jpg")),
};

/** Pictures that are drawn at once. */
export const smallest = { width: "256", height: "256" };

let browser: Browser | undefined;

export async function closeBrowser(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Of all pages of the context. */
  readonly faults: string[];
}

/** A visitor of their own, who leaves with the test. */
export async function visit(
  url: string,
  options: BrowserContextOptions = {},
  prepare: (context: BrowserContext) => Promise<unknown> = async () => {},
): Promise<Opened> {
  browser ??= await openChromium();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  onTestFinished(() => context.close());
  context.setDefaultTimeout(patience.timeout);
  const faults: string[] = [];
  context.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  context.on("weberror", (error) => faults.push(`${error.error()}`));
  await context.addInitScript(() =>
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
      console.error(`the policy refused ${blockedURI} by ${violatedDirective}`),
    ),
  );
  await context.addInitScript(
    ([name, form]) => location.protocol === "http:" && localStorage.setItem(name, localStorage.getItem(name) ?? form),
    ["sluice form", JSON.stringify({ own: { [cheapest]: smallest } })] as const,
  );
  await prepare(context);
  const page = await context.newPage();
  await page.goto(url);
  return { page, context, faults };
}

/** Refusals are answers with an error's status, which the console tells as such. */
export const besidesRefusals = (faults: readonly string[]) =>
  faults.filter((fault) => !/status of 4\d\d|ERR_INTERNET_DISCONNECTED/.test(fault));

export const runButton = (page: Page) => page.getByRole("button", { name: "Run", exact: true });
export const prompt = (page: Page) => page.getByLabel("Prompt", { exact: true });
export const chooseKind = (page: Page, name: string) => page.locator(".choices label", { hasText: name }).click();

const kinds: Record<string, string> = {
  image: "Picture",
  "image-edit": "Edit",
  video: "Film",
  speech: "Speech",
  text: "Text",
};

export async function chooseModel(page: Page, kind: string, id: string): Promise<void> {
  await chooseKind(page, kinds[kind] ?? "");
  await page.locator("#model").selectOption(id);
}

/** Waits for the end of a run of the model. */
export async function result(page: Page, model: string, state = "COMPLETED") {
  const shown = page.locator(`.result[data-model="${model}"][data-state="${state}"]`);
  await shown.waitFor();
  return shown;
}

export async function codeIn(page: Page, language: string): Promise<string> {
  await page.locator(".snippets label", { hasText: language }).click();
  return (await page.locator(".snippets pre").textContent()) ?? "";
}

export async function mint(url: string, asked: object): Promise<string> {
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const answer = await fetch(`${url}/tokens`, { method: "POST", headers, body: JSON.stringify(asked) });
  return ((await answer.json()) as { token: string }).token;
}

/** Takes the place of the model's samples, and does at each step what the test says. */
export async function attach(url: string, endpoint: string): Promise<ScriptedWorker> {
  const environment = { endpoint, url, key: testSettings.PLATFORM_API_KEY, worker: `of-${endpoint}` };
  const worker = new ScriptedWorker(workerEnvironment(environment), () => undefined);
  onTestFinished(() => worker.leave());
  await worker.ping();
  return worker;
}
