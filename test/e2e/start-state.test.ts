// What `npm start` keeps, ends, builds anew and tells of: seen through a small Worker in place of ours.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/serve-eventually.ts";
import { isAlive, NpmStart } from "./support/npm-start.ts";

const probe = readFileSync(join(import.meta.dirname, "support/probe-worker.js"), "utf8");
const patienceMs = 20_000;

let server: NpmStart;
beforeAll(async () => {
  server = await NpmStart.start({
    args: ["--plan", "anonymous"],
    settings: { ANONYMUS: "off", BUDGET_DAY_USD: "much" },
    prepare,
  });
});
afterAll(() => server.stop());

function prepare(folder: string): void {
  writeFileSync(join(folder, "src/index.ts"), probe);
  const page = join(folder, "src/page");
  mkdirSync(page);
  writeFileSync(join(page, "index.html"), "<h1>A page</h1>");
  writeFileSync(join(page, "_headers"), "/*\n  X-Of-The-Page: yes\n");
  writeFileSync(join(page, "_redirects"), "/old /new 302\n");
  const config = join(folder, "wrangler.toml");
  const assets = '[assets]\ndirectory = "src/page"\n';
  writeFileSync(config, readFileSync(config, "utf8").replace(/^\[assets\]\n(?:.+\n)+/m, assets));
}

/** A request that meets workerd as it is replaced may never be answered. */
const ask = async <T>(path: string): Promise<T> => {
  const response = await fetch(server.url + path, { signal: AbortSignal.timeout(5000) });
  return (await response.json()) as T;
};
const edit = (from: string, to: string) => {
  const path = join(server.folder, "src/index.ts");
  writeFileSync(path, readFileSync(path, "utf8").replace(from, to));
};
const wordIs = (word: string) =>
  eventually(`the word ${word}`, patienceMs, async () => (await ask<{ word: string }>("/word")).word === word);
const linesWith = (text: string) => server.log.filter((line) => line.includes(text));

describe("the state", () => {
  it("outlives a restart: KV, R2, an object and the cache; an overdue alarm rings", async () => {
    const ringsAt = Date.now() + 1000;
    await ask(`/write?text=kept&ringsAt=${ringsAt}`);
    await server.interrupt();
    await server.restart();
    await eventually("the overdue alarm", patienceMs, async () => (await ask<{ rang?: boolean }>("/read")).rang);
    expect(Date.now()).toBeGreaterThan(ringsAt);
    expect(await ask("/read")).toEqual({ kv: "kept", r2: "kept", cache: "kept", object: "kept", rang: true });
  });

  it("is left by Ctrl-C without a word of a crash", async () => {
    await server.interrupt();
    await server.restart();
    expect(linesWith("crashed")).toEqual([]);
  });

  it("is freed of a workerd whose Node was killed: the next start ends it", async () => {
    const { workerd } = server.pids;
    await server.kill9();
    expect(isAlive(workerd)).toBe(true);
    await server.restart();
    expect(isAlive(workerd)).toBe(false);
    expect(await ask("/read")).toMatchObject({ object: "kept" });
  });
});

describe("the bundle of the last start", () => {
  it("is served at once, and held against the source", async () => {
    await server.interrupt();
    const file = join(server.folder, ".state/bundle.json");
    const kept = JSON.parse(readFileSync(file, "utf8")) as { code: string };
    writeFileSync(file, JSON.stringify({ ...kept, code: kept.code.replaceAll("first", "kept by mistake") }));
    const before = linesWith("rebuiltInMs").length;
    await server.restart();
    // Of a bundle that is the source's, nothing is said.
    await eventually("a word of it", patienceMs, async () => linesWith("rebuiltInMs").length > before);
    await wordIs("first");
  });
});

describe("settings", () => {
  it("that nobody knows are named, with what was probably meant", () => {
    expect(linesWith("ANONYMUS")[0]).toContain(".dev.vars sets ANONYMUS, which is no setting. Did you mean ANONYMOUS?");
  });

  it("that are wrong are told with the first start, before anybody asks", () => {
    expect(linesWith("BUDGET_DAY_USD")[0]).toContain("The setting BUDGET_DAY_USD: expected an amount in USD");
    const screen = server.log.findIndex((line) => line.startsWith("The settings that are named above are wrong."));
    expect(screen).toBeGreaterThan(server.log.findIndex((line) => line.includes("BUDGET_DAY_USD")));
    expect(linesWith("Open it in a browser")).toEqual([]);
  });

  it("take the plan of sessions from --plan", async () => {
    expect(await ask("/any")).toMatchObject({ plan: "anonymous" });
  });
});

describe("static assets", () => {
  it("are answered before the Worker, with the headers and redirects of their files", async () => {
    const page = await fetch(`${server.url}/`);
    expect(await page.text()).toBe("<h1>A page</h1>");
    expect(page.headers.get("X-Of-The-Page")).toBe("yes");
    const redirect = await fetch(`${server.url}/old`, { redirect: "manual" });
    expect([redirect.status, redirect.headers.get("Location")]).toEqual([302, "/new"]);
    expect(await ask("/v2/any/run")).toMatchObject({ pathname: "/v2/any/run" });
  });
});

describe("an exception that no answer tells of", () => {
  it.each([
    ["planted after the answer", "/fail-later"],
    ["planted in an alarm", "/fail-at-alarm"],
  ])("%s is told once, by its place in the source", async (message, path) => {
    for (const object of ["one", "two", "three"]) await ask(`${path}?object=${object}`);
    await eventually("a word of it", patienceMs, async () => linesWith(message).length > 0);
    // Other requests' lines come after those of the exceptions before them.
    await ask("/any");
    expect(linesWith(message)).toHaveLength(1);
    const row = probe.split("\n").findIndex((line) => line.includes(message)) + 1;
    expect(linesWith(message)[0]).toContain(`src/index.ts:${row}:`);
  });
});

describe("an edit", () => {
  it("that changes nothing of the Worker is told as such, and ends no call", async () => {
    const { workerd } = server.pids;
    edit("const word", "// A comment.\nconst word");
    await eventually("a word of it", patienceMs, async () => linesWith(`"isSame":true`).length > 0);
    expect(server.pids.workerd).toBe(workerd);
  });

  it("of a file of the page is served", async () => {
    writeFileSync(join(server.folder, "src/page/index.html"), "<h1>Another page</h1>");
    await eventually("the other page", patienceMs, async () =>
      (await (await fetch(`${server.url}/`, { signal: AbortSignal.timeout(5000) })).text()).includes("Another"),
    );
  });

  it("is served", async () => {
    edit(`word = "first"`, `word = "second"`);
    await wordIs("second");
  });

  it.each([
    ["cannot be built", `word = "second" +`, "Unexpected"],
    ["does not start", `word = notThere`, "notThere is not defined"],
  ])("that %s is told once, and the old code goes on", async (_, broken, told) => {
    edit(`word = "second"`, broken);
    await eventually("a word of it", patienceMs, async () => linesWith(told).length > 0);
    await wordIs("second");
    edit(broken, `word = "third"`);
    await wordIs("third");
    expect(linesWith(told)).toHaveLength(1);
    edit(`word = "third"`, `word = "second"`);
    await wordIs("second");
  });
});
