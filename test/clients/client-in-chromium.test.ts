// The client where browsers have it: a plain page of another origin, and React, from the package as `npm pack` makes it.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { createSluice, type Sluice } from "../../src/client/index.ts";
import { end, run } from "../e2e/support/checkout.ts";
import { blocksUnder } from "../e2e/support/readme.ts";
import { freePort } from "../support/serve-locally.ts";
import { chromiumPath, describeInChromium, openChromium } from "./chromium.ts";
import { type Claim, claims, crowd } from "./client-claims.ts";
import { oneAtATime, Stage } from "./client-stage.ts";
import { buildApp, type PackedApp, packApp, serveFolder } from "./packed-app.ts";

let stage: Stage;
let app: PackedApp;
let pages: { url: string; server: Server };

beforeAll(async () => {
  app = packApp(
    blocksUnder("docs/client.md", "React", "jsx")[0],
    blocksUnder("README.md", "A first picture", "jsx")[0],
  );
  buildApp(app);
  stage = await Stage.open();
  pages = await serveFolder(app.folder);
}, 180_000);
afterAll(async () => {
  pages?.server.close();
  await stage?.close();
  app?.remove();
});

describeInChromium("in Chromium", () => {
  let browser: Browser;
  beforeAll(async () => {
    if (chromiumPath) browser = await openChromium();
  });
  afterAll(() => browser?.close());

  async function plainPage(): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(30_000);
    await page.goto(`${pages.url}/plain.html?gateway=${stage.url}`);
    await page.waitForFunction(() => document.title === "ready");
    return page;
  }

  const check = async ({ scenario, given, holds }: Omit<Claim, "name">) => {
    const page = await plainPage();
    const { url, brokenUrl, mint } = stage.world();
    await page.exposeFunction("mint", mint);
    const world = `{ createSluice, mint, ...${JSON.stringify({ url, brokenUrl })} }`;
    holds((await page.evaluate(`(${scenario})(${world}, ${JSON.stringify(given)})`)) as never);
    await page.context().close();
  };

  it("a plain page runs many jobs at once", () => check(crowd()));

  // Each of them waits most of its time.
  describe.concurrent("a plain page", () => {
    it.each(claims)("$name", check);

    it("shows the picture, and plays the film", async () => {
      const page = await plainPage();
      const seen = await page.evaluate(async () => {
        const { sluice } = window as unknown as { sluice: Sluice };
        const image = document.querySelector("img") as HTMLImageElement;
        const small = { prompt: "a lighthouse", width: 256, height: 256 };
        image.src = (await sluice.run("black-forest-labs-flux-1-schnell", small)).output.image_url;
        await image.decode();
        const src = (await sluice.run("wan-2-6-t2v", { prompt: "waves" })).output.video_url;
        const player = Object.assign(document.createElement("video"), { muted: true, src });
        document.body.append(player);
        await new Promise((resolve, reject) => Object.assign(player, { onloadeddata: resolve, onerror: reject }));
        return [image.naturalWidth, player.duration];
      });
      expect(seen).toEqual([256, expect.any(Number)]);
      await page.context().close();
    });

    it("two tabs are one visitor, and work at the same time", async () => {
      const page = await plainPage();
      // The first tab's session is the one that both have.
      await page.evaluate(() => (window as unknown as { sluice: Sluice }).sluice.usage());
      const other = await page.context().newPage();
      await other.goto(page.url());
      await other.waitForFunction(() => document.title === "ready");
      const makeThree = (from: number) =>
        Promise.all(
          [0, 1, 2].map((more) => {
            const { sluice } = window as unknown as { sluice: Sluice };
            return sluice.run("wan-2-6-t2v", { prompt: "a", seed: from + more });
          }),
        ).then((jobs) => jobs.length);
      expect(await Promise.all([page.evaluate(makeThree, 10), other.evaluate(makeThree, 20)])).toEqual([3, 3]);
      const gallery = () =>
        (window as unknown as { sluice: Sluice }).sluice.gallery().then(({ images }) => images.length);
      expect(await Promise.all([page.evaluate(gallery), other.evaluate(gallery)])).toEqual([6, 6]);
      await page.context().close();
    });
  });

  it("the latest client names its twin, which is for ever", async () => {
    const latest = await fetch(`${stage.url}/client.js`);
    const twin = await fetch(stage.url + latest.headers.get("Content-Location"));
    expect(await twin.text()).toBe(await latest.text());
    expect(twin.headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
    expect(latest.headers.get("Cache-Control")).not.toContain("immutable");
    for (const { headers } of [latest, twin]) {
      expect(headers.get("Content-Type")).toMatch(/^text\/javascript/);
      expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
      expect(headers.get("Cross-Origin-Resource-Policy")).toBe("cross-origin");
    }
    expect((await fetch(`${stage.url}/client-0123456789abcdef.js`)).status).toBe(404);
  });

  describe.concurrent("with React in its strict mode, from the packed package", () => {
    async function openApp(terms: object = oneAtATime) {
      const { token } = await stage.mint(stage.newUser(), terms);
      const page = await (await browser.newContext()).newPage();
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
      await page.goto(`${pages.url}/dist/index.html?${new URLSearchParams({ gateway: stage.url, token })}`);
      page.setDefaultTimeout(30_000);
      const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
      const shows = (state: string) => page.locator("output", { hasText: new RegExp(`^${state}$`) }).waitFor();
      const sluice = createSluice({ url: stage.url, token });
      const ended = async () => (await sluice.usage()).jobs.map(({ status }) => status);
      return { page, press, shows, faults, ended };
    }

    it("makes a picture, and shows what was used", async () => {
      const { page, press, shows, faults } = await openApp();
      await page.locator("[data-of=plan]", { hasText: "unlimited" }).waitFor();
      await press("Make");
      await shows("COMPLETED");
      await page.locator("img").evaluate((image: HTMLImageElement) => image.decode());
      await press("Refresh");
      await page.locator("[data-of=jobs]", { hasText: /^COMPLETED$/ }).waitFor();
      expect(faults).toEqual([]);
      await page.context().close();
    });

    it("lets the newest job win: the older one is cancelled, and shows nothing", async () => {
      const { page, press, shows, faults, ended } = await openApp();
      await press("Make slowly");
      await shows("IN_PROGRESS");
      await press("Make");
      await shows("COMPLETED");
      expect(await ended()).toEqual(["COMPLETED", "CANCELLED"]);
      expect(faults).toEqual([]);
      await page.context().close();
    });

    it.each([
      ["the component goes", "Show or hide"],
      ["it is told to", "Cancel"],
      ["another model is asked for", "Another model"],
    ])("cancels the job where %s", async (_name, button) => {
      const { page, press, shows, faults, ended } = await openApp();
      await press("Make slowly");
      await shows("IN_PROGRESS");
      await press(button);
      await vi.waitFor(async () => expect(await ended()).toEqual(["CANCELLED"]), { timeout: 30_000, interval: 100 });
      if (button !== "Show or hide") await shows("idle");
      expect(faults).toEqual([]);
      await page.context().close();
    });

    it("leaves one job of an effect that strict mode runs twice", async () => {
      const { page, press, shows, ended } = await openApp();
      await press("Make at once");
      await shows("IN_PROGRESS");
      await press("Show or hide");
      await vi.waitFor(async () => expect(new Set(await ended())).toEqual(new Set(["CANCELLED"])), { timeout: 30_000 });
      await press("Show or hide");
      await shows("IN_PROGRESS");
      expect((await ended()).filter((status) => status.startsWith("IN_"))).toHaveLength(1);
      await page.context().close();
    });

    it("shows why a job failed, and no error beside the next one", async () => {
      const { page, press, shows } = await openApp();
      await press("Fail");
      await shows("FAILED");
      expect(await page.getByRole("alert").textContent()).toBe("the prompt asked for a failure");
      await press("Make");
      await shows("COMPLETED");
      expect(await page.getByRole("alert").textContent()).toBe("");
      await page.context().close();
    });

    it.each([
      ["docs/client.md", "Make", "> img"],
      ["the README", "idle", "section img"],
    ])("makes the picture that %s shows how to make", async (_name, button, at) => {
      const page = await (await browser.newContext()).newPage();
      await page.goto(`${pages.url}/dist/docs.html?gateway=${stage.url}`);
      await page.getByRole("button", { name: button }).click();
      const picture = page.locator(`#app ${at}[alt="a lighthouse"]`);
      expect(
        await picture.evaluate((image: HTMLImageElement) => image.decode().then(() => image.naturalWidth)),
      ).toBeGreaterThan(0);
      await page.context().close();
    });

    it("shows a text as it comes", async () => {
      const { page, press, shows } = await openApp();
      await press("Another model");
      await press("Make");
      await shows("COMPLETED");
      expect(await page.locator("[data-of=text]").textContent()).toContain("a lighthouse");
      await page.context().close();
    });
  });
});

describe("the packed package", () => {
  it("has the client with its types, the hooks, and no test", () => {
    const files = readdirSync(app.packaged, { recursive: true, encoding: "utf8" });
    for (const file of ["dist/client/index.js", "dist/client/index.d.ts", "dist/client/react.d.ts", "LICENSE"]) {
      expect(files).toContain(file);
    }
    expect(files.filter((file) => /(^test\/|\.test\.ts$|\.dev\.vars|^\.)/.test(file))).toEqual([]);
  });

  it("has types that refuse wrong input, line by line, with the member's name", () => {
    const wrong = [
      `await sluice.run("wan-2-6-i2v", { image: "https://a.test/b.png" });`,
      `await sluice.run("black-forest-labs-flux-1-schnell", { prompt: 7 });`,
      `await sluice.estimate("black-forest-labs-flux-1-schnell", { prompt: "a", sede: 7 });`,
      `(await sluice.run("wan-2-6-t2v", { prompt: "a" })).output.image_url;`,
    ];
    const right = [
      `import { createSluice } from "sluice/client";`,
      `const sluice = createSluice({ token: () => fetch("/token").then((answer) => answer.json()) });`,
      `const film = await sluice.run("wan-2-6-i2v", { prompt: "a", image: new File([], "a.png") });`,
      `console.log(film.output.video_url);`,
    ];
    const file = join(app.folder, "wrong.ts");
    writeFileSync(file, [...right, ...wrong, "export {};"].join("\n"));
    const flags = "--noEmit --strict --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom";
    const tsc = [join(root, "node_modules/typescript/bin/tsc"), ...flags.split(" "), file];
    const { status, stdout } = spawnSync(process.execPath, tsc, { cwd: app.folder, encoding: "utf8" });
    expect(status).not.toBe(0);
    const faults = [...stdout.matchAll(/^wrong\.ts\((\d+),.*error (.*)/gm)].map(([, line]) => Number(line));
    expect([...new Set(faults)], stdout).toEqual(wrong.map((_, index) => right.length + index + 1));
    for (const member of ["prompt", "sede", "image_url"]) expect(stdout).toContain(`'${member}'`);
  });

  it("starts the gateway, and keeps what it writes with the app", async () => {
    const port = await freePort();
    const { bin } = JSON.parse(readFileSync(join(app.packaged, "package.json"), "utf8")) as { bin: { sluice: string } };
    const server = run(app.folder, [join(app.packaged, bin.sluice), "--port", `${port}`]);
    await vi.waitFor(() => expect(server.output()).toContain("Sluice serves at"), { timeout: 50_000, interval: 50 });
    const sluice = createSluice({ url: `http://127.0.0.1:${port}` });
    expect((await sluice.run("wan-2-6-t2v", { prompt: "a lighthouse" })).status).toBe("COMPLETED");
    expect((await fetch(`http://127.0.0.1:${port}/client.js`)).status).toBe(200);
    await end(server);
    expect(readFileSync(join(app.folder, ".sluice/.gitignore"), "utf8")).toBe("*\n");
    expect(readFileSync(join(app.folder, ".sluice/.dev.vars"), "utf8")).toContain("LOCAL=true");
    expect(server.output()).toContain(".sluice/.dev.vars");
  });
});
