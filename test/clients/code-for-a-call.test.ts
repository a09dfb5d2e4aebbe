// The code that the playground shows for a call: each of the five is run as it stands.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { createSluice } from "../../src/client/index.ts";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { runBlock } from "../e2e/support/readme.ts";
import { describeInChromium } from "./chromium.ts";
import * as site from "./site.ts";

/** Quotes of every kind, which each language must bear. */
const words = `a "lighthouse" at 'dusk' \\ \`$HOME\` </script>`;
const models = [
  { kind: "image", id: site.cheapest, member: "image_url" },
  { kind: "text", id: "gpt-oss-120b", member: undefined },
] as const;

describeInChromium("the code for a call", () => {
  let server: NpmStart;
  beforeAll(async () => {
    server = await NpmStart.start({ settings: { SESSION_PLAN: "developer" } });
  });
  afterAll(async () => {
    await site.closeBrowser();
    await server.stop();
  });

  const said = async (code: string, names: object = {}) => {
    const lines: unknown[][] = [];
    await runBlock(code, { ...names, console: { log: (...line: unknown[]) => lines.push(line) } });
    return lines;
  };

  it.each(models)("of a model for $kind", async ({ kind, id, member }) => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, kind, id);
    await site.prompt(page).fill(words);
    const answered = expect.stringMatching(member ? /^http/ : /This is a sample answer/);

    const [byClient] = await said(await site.codeIn(page, "Client"), { createSluice });
    expect(byClient).toEqual([answered, expect.any(Number)]);
    const [byFetch] = await said(await site.codeIn(page, "fetch"));
    expect(byFetch).toEqual([answered]);

    const shell = spawnSync("bash", ["--norc", "-c", await site.codeIn(page, "curl")], { encoding: "utf8" });
    expect(JSON.parse(shell.stdout)).toMatchObject({ status: "COMPLETED", output: expect.anything() });
    expect(JSON.stringify(shell.stdout)).not.toContain(process.env["HOME"]);

    const react = await build({
      stdin: {
        contents: `${await site.codeIn(page, "React")}\n${mount}`,
        loader: "jsx",
        resolveDir: import.meta.dirname,
      },
      alias: {
        "sluice/client": join(root, "src/client/index.ts"),
        "sluice/react": join(root, "src/client/react.ts"),
      },
      nodePaths: [join(import.meta.dirname, "node_modules")],
      jsx: "automatic",
      bundle: true,
      write: false,
      define: { "process.env.NODE_ENV": '"production"' },
    });
    const html = '<!doctype html><div id="root"></div><script src="/app.js"></script>';
    const app = await site.visit(`${server.url}/app`, {}, async (context) => {
      await context.route("**/app", (route) => route.fulfill({ contentType: "text/html", body: html }));
      await context.route("**/app.js", (route) => route.fulfill({ body: react.outputFiles[0]?.text ?? "" }));
    });
    await app.page.getByRole("button", { name: "Run" }).click();
    if (member) await app.page.locator("#root img").waitFor();
    else await app.page.locator("#root pre", { hasText: "This is a sample answer" }).waitFor();

    expect(await page.locator(".snippets label", { hasText: "OpenAI" }).count()).toBe(member ? 0 : 1);
    if (!member) {
      expect(await said(await site.codeIn(page, "OpenAI"), { OpenAI })).toEqual([[answered]]);
    }
    expect([...faults, ...app.faults]).toEqual([]);
  });

  it("says what the gateway refuses, and why a job failed", async () => {
    const { page } = await site.visit(server.url);
    await site.prompt(page).fill("a castle [fail]");
    const code = await site.codeIn(page, "fetch");
    await expect(said(code)).rejects.toThrow(/fail/i);
    await expect(said(code.replace(/"width": \d+/, '"width": 5'))).rejects.toThrow(/^input\.width/);
  });

  it("says where the client comes from", async () => {
    const { page } = await site.visit(server.url);
    expect(await site.codeIn(page, "Client")).toContain(`"${server.url}/client.js"`);
    expect(await site.codeIn(page, "React")).toContain("npm pack");
  });
});

const mount = `
import { createRoot } from "react-dom/client";
createRoot(document.getElementById("root")).render(<Example />);`;
