// The page at `/`, as `npm start` serves it: in a real browser, and beside the API.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { copyCheckout, end, run } from "../e2e/support/checkout.ts";
import { freePort } from "../support/serve-locally.ts";
import { chromiumPath, openChromium } from "./chromium.ts";

const clone = copyCheckout();
let server: ReturnType<typeof run>;
let url: string;
beforeAll(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  server = run(clone.path, ["src/cli/start.ts", "--port", `${port}`]);
  await vi.waitFor(() => expect(server.output()).toContain("Sluice serves at"), { timeout: 50_000, interval: 50 });
});
afterAll(async () => {
  await end(server);
  clone.remove();
});

describe("the page's files", () => {
  const files = readdirSync(join(clone.path, "src/site/public"));
  const pages = files.filter((file) => file !== "_headers").map((file) => (file === "index.html" ? "/" : `/${file}`));

  it("are all that the Worker is not asked for", () => {
    const { assets } = readWranglerConfig({ config: join(clone.path, "wrangler.toml") });
    expect(assets?.run_worker_first).toEqual(["/*", ...pages.map((page) => `!${page}`)]);
  });

  it.each(pages)("are served with a policy that trusts nothing inline and nobody else: %s", async (page) => {
    const { status, headers } = await fetch(url + page);
    expect(status).toBe(200);
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    const policy = headers.get("Content-Security-Policy");
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
    expect(policy).not.toContain("unsafe");
  });

  it.each(["/nowhere", "/index.html", "/_headers", "/%ff", "/page.js/"])(
    "leave %s to the gateway's 404",
    async (path) => {
      const response = await fetch(url + path, { headers: { Accept: "text/html", "Sec-Fetch-Mode": "navigate" } });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: "NOT_FOUND" });
    },
  );
});

describe("the page in Chromium", () => {
  let browser: Browser | undefined;
  let page: Page;
  let faults: string[];
  beforeEach(async ({ skip }) => {
    skip(!chromiumPath, "no Chromium is found; CHROMIUM may say where one is");
    browser ??= await openChromium();
    page = await browser.newPage();
    faults = [];
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(error.message));
    await page.goto(url);
    return () => page.context().close();
  });
  afterAll(() => browser?.close());

  const make = async (prompt: string) => {
    await page.getByLabel("What shall the picture show?").fill(prompt);
    await page.getByRole("button", { name: "Make a picture" }).click();
  };
  const sentence = () => page.locator(".error").textContent();

  it("makes a picture, says what it cost, and gives a curl line for the same one", async () => {
    await make("a sailor's lighthouse at dusk");
    const picture = page.getByAltText("a sailor's lighthouse at dusk");
    await picture.waitFor();
    expect(await picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);
    expect(await page.locator("figcaption").textContent()).toMatch(/^It cost 0\.\d+ USD\.$/);
    const curl = await page.getByLabel("The same call by curl").inputValue();
    const ran = spawnSync("bash", ["--norc", "-c", curl], { encoding: "utf8" });
    const again = JSON.parse(ran.stdout) as { status: string; output: { image_url: string } };
    expect(again.status).toBe("COMPLETED");
    expect(again.output.image_url).toBe(await picture.getAttribute("src"));
    expect(faults).toEqual([]);
  });

  it("is worked by the keyboard, and remembers its visitor", async () => {
    await page.getByLabel("What shall the picture show?").focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator("figure img").waitFor();
    const token = await page.evaluate(() => localStorage.getItem("token"));
    await page.reload();
    expect(await page.evaluate(() => localStorage.getItem("token"))).toBe(token);
    expect(faults).toEqual([]);
  });

  it("begins a new session where its own has ended", async () => {
    await page.evaluate(() => localStorage.setItem("token", "ended"));
    await make("a lighthouse");
    await page.locator("figure img").waitFor();
    expect(await page.evaluate(() => localStorage.getItem("token"))).not.toBe("ended");
  });

  it("says why the gateway refused, and why the model failed", async () => {
    await make("x".repeat(32_769));
    expect(await sentence()).toContain("input.prompt");
    await make("a lighthouse [fail]");
    await vi.waitFor(async () => expect(await sentence()).toBe("The job is FAILED: the prompt asked for a failure"));
    expect(await page.locator("figure").isVisible()).toBe(false);
  });

  it("says that the gateway cannot be reached", async () => {
    await page.context().setOffline(true);
    await make("a lighthouse");
    expect(await sentence()).toBe("The gateway cannot be reached.");
  });

  it("shows no picture, cost or curl line beside the error of another call", async () => {
    const shown = page.locator("figure");
    await make("a lighthouse");
    await shown.waitFor();
    await make("a lighthouse [fail]");
    await vi.waitFor(async () => expect(await sentence()).toContain("The job is FAILED"));
    expect(await shown.isVisible()).toBe(false);
    await make("a lighthouse in snow");
    await page.getByAltText("a lighthouse in snow").waitFor();
    expect(await page.locator(".error").count()).toBe(0);
  });
});
