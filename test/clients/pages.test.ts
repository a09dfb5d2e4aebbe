// All pages: their files, their policy, their looks; what every visitor meets on each of them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { SluiceError } from "../../src/client/index.ts";
import { bytes, troubleOf, usd } from "../../src/site/words.ts";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { describeInChromium } from "./chromium.ts";
import * as site from "./site.ts";
import { cheapest } from "./site.ts";

const budgets = { pageGzipBytes: 30 * 1024, siteLines: 2300 };
const built = join(root, "dist/site");
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
const read = (file: string) => readFileSync(join(built, file), "utf8");

/** What a browser asks for to get it. */
const pathOf = (file: string) =>
  `/${file.replace(/(^|\/)index\.html$/, "").replace(/\.html$/, "")}`.replace(/(.)\/$/, "$1");
const files = filesIn(built).filter((file) => file !== "_headers");
const paths = files.map(pathOf);
const pages = files.filter((file) => file.endsWith(".html"));

let server: NpmStart;
beforeAll(async () => {
  server = await NpmStart.start({ settings: { SESSION_PLAN: "developer" } });
});
afterAll(async () => {
  await site.closeBrowser();
  await server.stop();
});

/** A file of such a name would stand before the route: an asset is served without asking the Worker. */
function shadowed(routes: readonly string[], paths: readonly string[]): string[] {
  const patterns = routes.map(
    (route) => new RegExp(`^${route.replaceAll(/\{\w+\}$/g, ".+").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  );
  return paths.filter((path) => patterns.some((pattern) => pattern.test(path)));
}

describe("the built files", () => {
  it("have no path that a route has", async () => {
    const { paths: routes } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object };
    expect(shadowed(Object.keys(routes), paths)).toEqual([]);
    const taken = ["usage.html", "images.html", "models/mine.html", "v2/x/run.html", "v1/endpoints.html"].map(pathOf);
    expect(shadowed(Object.keys(routes), taken)).toEqual(taken);
  });

  it.each(paths)("are served with a policy that trusts nothing inline and nobody else: %s", async (path) => {
    const { status, headers } = await fetch(server.url + path);
    expect(status).toBe(200);
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    const policy = headers.get("Content-Security-Policy");
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data: https:; media-src 'self' blob: data: https:; /,
    );
    expect(policy).not.toContain("unsafe");
    expect(headers.get("Set-Cookie")).toBeNull();
  });

  it.each(["/nowhere", "/index.html", "/gallery.html", "/_headers", "/%ff", "/usage", "/images"])(
    "leave %s to the gateway",
    async (path) => {
      const response = await fetch(server.url + path, {
        headers: { Accept: "text/html", "Sec-Fetch-Mode": "navigate" },
      });
      expect(await response.json()).toMatchObject({ code: expect.stringMatching(/^(NOT_FOUND|UNAUTHORIZED)$/) });
    },
  );

  it.each(pages)("ask for at most 30 KB of script: %s", (page) => {
    const [, entry = ""] = /<script type="module" src="\/([^"]+)"/.exec(read(page)) ?? [];
    const asked = new Set<string>();
    const follow = (file: string) => {
      if (asked.has(file)) return;
      asked.add(file);
      for (const [, name] of read(file).matchAll(/from"\.\/([^"]+)"|import"\.\/([^"]+)"/g)) follow(`site/${name}`);
    };
    follow(entry);
    const bytes = [...asked].reduce((sum, file) => sum + gzipSync(read(file), { level: 9 }).byteLength, 0);
    expect(bytes).toBeLessThanOrEqual(budgets.pageGzipBytes);
  });

  it.each(pages)("lead nowhere that is not there: %s", async (page) => {
    const links = [...read(page).matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, link = ""]) => link);
    const own = links.filter((link) => !/^https?:/.test(link)).map((link) => new URL(link, `http://x${pathOf(page)}`));
    const lost = own.filter(({ pathname, hash }) => {
      const file = files[paths.indexOf(pathname)];
      if (file === undefined) return pathname !== "/openapi.json";
      return hash !== "" && !read(file).includes(` id="${decodeURIComponent(hash.slice(1))}"`);
    });
    expect(lost.map(({ pathname, hash }) => pathname + hash)).toEqual([]);
  });
});

describe("the sources of the pages", () => {
  const sources = filesIn(join(root, "src/site")).map((file) => readFileSync(join(root, "src/site", file), "utf8"));
  const style = readFileSync(join(root, "src/site/style.css"), "utf8");

  it("are read in an hour", () => {
    expect(sources.join("").split("\n").length - 1).toBeLessThanOrEqual(budgets.siteLines);
  });

  it("have five type sizes and distances in fours", () => {
    const sizes = new Set([...style.matchAll(/--size-\d: ([\d.]+rem)/g)].map(([, size]) => size));
    expect(sizes.size).toBe(5);
    const used = [...style.matchAll(/font(?:-size)?: ([^;]+);/g)].map(([, value = ""]) => value);
    expect(used.filter((value) => !/^(var\(--size-\d\)|inherit)/.test(value))).toEqual([]);
    const distances = [...style.matchAll(/(?:padding|margin|gap|inset)[\w-]*: ([^;]+);/g)].flatMap(
      ([, value = ""]) => value.match(/[\d.]+rem|[\d.]+px/g) ?? [],
    );
    expect(distances.length).toBeGreaterThan(30);
    expect(
      distances.filter((distance) => (Number.parseFloat(distance) * (distance.endsWith("rem") ? 16 : 1)) % 4 !== 0),
    ).toEqual([]);
  });
});

describe("the words of the pages", () => {
  it.each([
    [0, "0 KB"],
    [12, "0.1 KB"],
    [9_500, "9.5 KB"],
    [640_000, "640 KB"],
    [1_500_000, "1.5 MB"],
    [100_000_000, "100 MB"],
  ])("%i bytes are %s", (size, says) => expect(bytes(size)).toBe(says));

  it.each([
    [0, "$0.00"],
    [0.1, "$0.10"],
    [0.237, "$0.237"],
    [0.00252, "$0.00252"],
    [0.0000001, "$0.0000001"],
    [0.9999, "$1.00"],
    [5, "$5.00"],
    [12.345, "$12.35"],
  ])("%d USD are %s", (amount, says) => expect(usd(amount)).toBe(says));

  const quotaUsedUp = "The quota is used up";
  it.each([
    [
      "QUOTA_EXCEEDED",
      "usd-day: 0.05 USD would exceed the 1 USD of this day, of which 0.99 are used",
      quotaUsedUp,
      "This may take $0.05. $0.99 is used of the $1.00 of this day.",
    ],
    [
      "QUOTA_EXCEEDED",
      "usd-day-video: 5 USD would exceed the 1 USD of this day, of which 0 are used",
      "Your plan has no room for this",
      "This may take $5.00. That alone is more than the $1.00 of this day.",
    ],
    [
      "QUOTA_EXCEEDED",
      "stored: 2000000 bytes would exceed the 100000000 bytes kept at the same time, of which 99000000 are used",
      quotaUsedUp,
      "This may take 2 MB. 99 MB are used of the 100 MB kept at the same time.",
    ],
    [
      "QUOTA_EXCEEDED",
      "app-usd-day: what the app may spend this day is spent or promised",
      quotaUsedUp,
      "What the app may spend this day is spent or promised.",
    ],
    [
      "RATE_LIMITED",
      "requests-minute: more than 1 requests in a minute",
      "Too many requests",
      "The limit is 1 request in a minute.",
    ],
    ["JOB_CANCELLED", "The job is CANCELLED.", "Cancelled", "The job was cancelled."],
    ["JOB_FAILED", "out of memory", "The model failed", "out of memory"],
  ])("%s, %s: %s", (code, message, title, sentence) => {
    expect(troubleOf(new SluiceError(code, message))).toMatchObject({ title, sentence });
  });
});

describeInChromium("the pages in Chromium", () => {
  const shown = ["/", "/gallery", "/account", "/docs", "/docs/exact-quota", "/docs/routes"];
  /** With a picture, a film and a job that failed. */
  const lived = async (options: Parameters<typeof site.visit>[1]) => {
    const opened = await site.visit(server.url, options);
    await site.runButton(opened.page).click();
    await opened.page.getByAltText("a lighthouse at dusk").waitFor();
    return opened;
  };
  const settled = { "/": ".panel", "/gallery": ".tile", "/account": ".bars" } as Record<string, string>;
  const go = async (page: Page, path: string) => {
    if (path !== "/") await page.goto(server.url + path);
    await page
      .locator(settled[path] ?? "main")
      .first()
      .waitFor();
  };

  it.each(["light", "dark"] as const)(
    "break no rule of axe in the %s scheme",
    { timeout: 120_000 },
    async (colorScheme) => {
      // axe is given by the driver, which no policy of the page hinders.
      const { page, faults } = await lived({ colorScheme });
      for (const path of shown) {
        await go(page, path);
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
        expect(violations.map(({ id, nodes }) => `${path} ${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual(
          [],
        );
      }
      expect(faults).toEqual([]);
    },
  );

  it("overflow nowhere on a phone", async () => {
    const { page, faults } = await lived({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    for (const path of shown) {
      await go(page, path);
      expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, 360]);
      // What a page is about stands in its first view.
      expect((await page.locator("h1").boundingBox())?.y).toBeLessThan(500);
    }
    await page.goto(server.url);
    await site.chooseKind(page, "Edit");
    await page.getByText("Camera").waitFor();
    expect(faults).toEqual([]);
  });

  it("show, hand on, save and delete what was made", async () => {
    const { page, faults } = await lived({});
    await page.goto(`${server.url}/gallery`);
    const tile = page.locator(".tile");
    await tile.waitFor();
    expect(await tile.textContent()).toMatch(/\$0\.\d+ · .*ends in 7 days/);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      tile.getByRole("link", { name: "Download" }).click(),
    ]);
    expect(readFileSync(await download.path()).byteLength).toBeGreaterThan(1000);
    await tile.getByRole("link", { name: "Remix" }).click();
    await site.runButton(page).waitFor();
    expect(await site.prompt(page).inputValue()).toBe("a lighthouse at dusk");
    expect(await page.getByLabel("Width").inputValue()).toBe("256");
    expect(await page.getByLabel("Keep the seed").isChecked()).toBe(true);
    await page.goto(`${server.url}/gallery`);
    const answers = [false, true];
    page.on("dialog", (dialog) => (answers.shift() ? dialog.accept() : dialog.dismiss()));
    const remove = page.getByRole("button", { name: /^Delete black-forest/ });
    await remove.click();
    expect(await tile.count()).toBe(1);
    await remove.press("Enter");
    await page.getByText("Nothing yet.").waitFor();
    expect(await page.locator(":focus").textContent()).toBe("Gallery");
    expect(faults).toEqual([]);
  });

  it("show uploads, and give one to a model that takes its kind", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image-edit", "p-image-edit");
    await page.locator(".drop input[type=file]").first().setInputFiles(site.picture);
    await page.locator(".file").waitFor();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.goto(`${server.url}/gallery`);
    await page.getByText("Uploads").click();
    await page.getByRole("link", { name: "Use" }).click();
    await page.locator(".file").waitFor();
    expect(await page.locator("#model option:checked").textContent()).toMatch(/./);
    expect(faults).toEqual([]);
  });

  it("scroll on through the gallery until its end", async () => {
    const { page, context, faults } = await lived({});
    await page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem("sluice ") ?? "{}");
      const headers = { Authorization: `Bearer ${token}` };
      const make = (seed: number) => {
        const body = JSON.stringify({ input: { prompt: "a fox", width: 256, height: 256, seed } });
        return fetch("/v2/black-forest-labs-flux-1-schnell/runsync", { method: "POST", headers, body });
      };
      await Promise.all(
        Array.from({ length: 6 }, (_, first) => first).map(async (first) => {
          for (let seed = first; seed < 30; seed += 6) await make(seed);
        }),
      );
    });
    const gallery = await context.newPage();
    await gallery.goto(`${server.url}/gallery`);
    await vi.waitFor(async () => {
      await gallery.mouse.wheel(0, 2000);
      expect(await gallery.locator(".tile").count()).toBe(31);
    }, site.patience);
    expect(faults.filter((fault) => !fault.includes("429"))).toEqual([]);
  });

  it("show nothing again that was deleted, when the gallery goes on", async () => {
    const file = (name: number) => ({
      key: `file-${name}`,
      url: `${server.url}/images/file-${name}`,
      field: "image_url",
      model: `file ${name}`,
      cost: 0,
      size: 1,
      completedAt: new Date().toISOString(),
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const pages = {
      first: { images: Array.from({ length: 24 }, (_, name) => file(name)), cursor: "second" },
      second: { images: [file(23), file(24)], cursor: null },
    };
    const { page, context, faults } = await site.visit(`${server.url}/docs`, {}, async (context) => {
      await context.route(/\/images\/file-/, (route) => route.fulfill({ body: site.picture.buffer }));
      await context.route(/\/images\?/, (route) =>
        route.fulfill({ json: route.request().url().includes("cursor") ? pages.second : pages.first }),
      );
    });
    context.on("dialog", (dialog) => dialog.accept());
    await page.goto(`${server.url}/gallery`);
    const tiles = page.locator(".tile");
    await tiles.nth(23).waitFor();
    await page.getByRole("button", { name: "Delete file 0," }).press("Enter");
    await vi.waitFor(async () => expect(await tiles.count()).toBe(23), site.patience);
    // The next one has the focus, for the next press.
    expect(await page.locator(":focus").getAttribute("aria-label")).toMatch(/^Delete file 1,/);
    await tiles.last().scrollIntoViewIfNeeded();
    await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
    const names = await page.locator(".tile .name").allTextContents();
    expect(names).toEqual(Array.from({ length: 24 }, (_, name) => `file ${name + 1}`));
    expect(faults).toEqual([]);
  });

  it("show limits as bars, spending as plots, and the last jobs", async () => {
    const { page, faults } = await lived({});
    await page.goto(`${server.url}/account`);
    await page.getByText("Requests a minute").waitFor();
    expect(await page.getByRole("img", { name: /^Spent by day\. \d{4}-\d\d-\d\d: \$0\.\d+/ }).count()).toBe(1);
    const column = page.locator(".columns span").last();
    expect((await column.boundingBox())?.height).toBeGreaterThan(100);
    expect(await page.getByRole("progressbar", { name: /^black-forest/ }).getAttribute("value")).toBe("1");
    expect(await page.getByRole("region", { name: "Last jobs" }).textContent()).toContain("completed");
    expect(faults).toEqual([]);
  });

  it("show a limit of nothing as a full bar, and say in words what is not known yet", async () => {
    const limit = { limit: 0, used: 0, reserved: 0, remaining: 0, resetsAt: null };
    const usage = {
      plan: "free",
      limits: [{ ...limit, name: "stored", unit: "stored" }],
      jobs: [],
      spent: [{ day: "2026-11-01", model: cheapest, jobs: 7, usd: 0.0101, assumedUsd: 0.00503 }],
    };
    const { page, faults } = await site.visit(`${server.url}/account`, {}, (context) =>
      context.route("**/usage?*", (route) => route.fulfill({ json: usage })),
    );
    const bar = page.getByRole("progressbar", { name: "Stored, 0 KB of 0 KB" });
    expect([await bar.getAttribute("value"), await bar.getAttribute("class")]).toEqual(["1", "bad"]);
    await page.getByText("$0.0101 for 7 jobs. $0.00503 of it is an estimate").waitFor();
    expect(faults).toEqual([]);
  });

  it("open the route that an address names, with its code in the language chosen before", async () => {
    const { page, faults } = await site.visit(`${server.url}/docs/routes#post-v2-model-run`);
    const route = page.locator("[id='post-v2-model-run']");
    await route.locator("label", { hasText: "fetch" }).click();
    await page.goto(`${server.url}/docs/routes#get-usage`);
    expect(await page.locator("[id='get-usage'] .tabs pre").textContent()).toContain("await fetch(");
    expect(faults).toEqual([]);
  });
});
