// What may go wrong with the pages, and who may mean them ill: refusals, lost connections, other people's tokens, models that
// answer markup, browsers that keep nothing.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext } from "playwright-core";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { describeInChromium } from "./chromium.ts";
import * as site from "./site.ts";
import { cheapest } from "./site.ts";

let server: NpmStart;
beforeAll(async () => {
  server = await NpmStart.start({ settings: { SESSION_PLAN: "developer" } });
}, 60_000);
afterAll(async () => {
  await site.closeBrowser();
  await server.stop();
});

/** An edit of a setting is served. */
const soon = { timeout: 30_000, interval: 100 };
const tokenForm = { label: "Token", button: "Use this token" };

describeInChromium("the pages say it in place, and lose nothing of the form", () => {
  it("where a model failed", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.prompt(page).fill("a castle [fail]");
    await site.runButton(page).click();
    const said = await site.result(page, cheapest, "TROUBLE");
    expect(await said.getByRole("alert").textContent()).toContain("The model failed");
    expect(await site.prompt(page).inputValue()).toBe("a castle [fail]");
    await site.prompt(page).fill("a castle");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByAltText("a castle").waitFor();
    expect(faults).toEqual([]);
  });

  it("where a submit is refused: at the field", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image", "qwen-image-t2i-lora");
    await page.getByText("More options").click();
    await page.getByLabel("Loras").fill("[{");
    await site.runButton(page).click();
    await page.locator(".field .fault", { hasText: "input.loras" }).waitFor();
    expect(await page.getByLabel("Loras").inputValue()).toBe("[{");
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("where there is no connection, and goes on when it is back", { timeout: 90_000 }, async () => {
    const { page, context, faults } = await site.visit(server.url);
    await site.prompt(page).fill("a harbour");
    await context.setOffline(true);
    await site.runButton(page).click();
    const said = await site.result(page, cheapest, "TROUBLE");
    expect(await said.getByRole("alert").textContent()).toContain("Check your connection");
    await context.setOffline(false);
    expect(await site.prompt(page).inputValue()).toBe("a harbour");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByAltText("a harbour").waitFor();
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("where the connection is lost during a job, and whether a cancel was heard", { timeout: 90_000 }, async () => {
    const model = "z-image-turbo";
    const worker = await site.attach(server.url, model);
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image", model);
    const says = (words: string) => page.locator(".result [role=status]", { hasText: words }).waitFor();
    const begin = async () => {
      await site.runButton(page).click();
      const job = await worker.take();
      await says("Making it …");
      return job?.id ?? "";
    };
    const lose = async () => {
      await server.interrupt();
      await says("No connection. Still trying …");
    };
    const first = await begin();
    await lose();
    await server.restart();
    await says("Making it …");
    await worker.done(first, { output: { image_url: "data:image/png;base64,AAAA", cost: 0 } });
    await site.result(page, model);
    const second = await begin();
    await lose();
    const cancel = page.getByRole("button", { name: "Cancel" });
    await cancel.click();
    await says("Not cancelled: The gateway cannot be reached. The job may go on, and cost.");
    await server.restart();
    await cancel.click();
    await says("Cancelled.");
    await vi.waitFor(async () => expect(await worker.stops()).toEqual([second]), site.patience);
    expect(faults.filter((fault) => !/net::ERR_(CONNECTION|INCOMPLETE)/.test(fault))).toEqual([]);
  });

  it("where there is no connection when the file is to be fetched", async () => {
    const { page, context, faults } = await site.visit(server.url);
    const files = "**/images/*";
    await context.route(files, (route) => route.abort("internetdisconnected"));
    await site.runButton(page).click();
    await page.getByRole("heading", { name: "The file cannot be fetched" }).waitFor();
    await context.unroute(files);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByAltText("a lighthouse at dusk").waitFor();
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("where a limit is reached: what is left of today, and when the next run is let through", async () => {
    const rules = [
      { unit: "requests", limit: 1, per: "minute" },
      { unit: "usd", limit: 1, per: "day" },
    ];
    const token = await site.mint(server.url, { user: "limited", rules });
    const { page, faults } = await site.visit(`${server.url}/#token=${token}`);
    await site.runButton(page).click();
    await site.result(page, cheapest);
    await page.getByText("left today").waitFor();
    await site.runButton(page).click();
    const said = await site.result(page, cheapest, "TROUBLE");
    expect(await said.getByRole("alert").textContent()).toMatch(/requests/);
    expect(await page.getByRole("button", { name: /^Try again in \d+ s$/ }).isDisabled()).toBe(true);
    expect(await site.prompt(page).inputValue()).toBe("a lighthouse at dusk");
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("where a plan has no room for a kind: before it is run, and offers no second try", async () => {
    const rules = [
      { unit: "usd", limit: 5, per: "day" },
      { unit: "usd", limit: 0, per: "day", models: ["video"] },
    ];
    const token = await site.mint(server.url, { user: "no-films", rules });
    const { page, faults } = await site.visit(`${server.url}/#token=${token}`);
    await page.getByText(/of \$[\d.]+ left today\./).waitFor();
    const warning = page.getByText("Your plan has no room for this: it allows $0.00 a day for video.");
    await site.chooseKind(page, "Film");
    await warning.waitFor();
    await page.getByText("$0.00 of $0.00 left today for video.").waitFor();
    await site.runButton(page).click();
    const said = page.locator(".result[data-state=TROUBLE]");
    await said.getByText("Waiting does not help. Take another kind of model.").waitFor();
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    await site.chooseKind(page, "Picture");
    await warning.waitFor({ state: "detached" });
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("where a token has ended: at once, with a place for another", async () => {
    const token = await site.mint(server.url, { user: "ada", ttlSeconds: 4 });
    const { page, faults } = await site.visit(`${server.url}/#token=${token}`);
    expect(page.url()).toBe(`${server.url}/`);
    await page.getByText("With the token of ada.").waitFor();
    await site.prompt(page).fill("a bridge");
    await vi.waitFor(
      async () => {
        const answer = await fetch(`${server.url}/usage`, { headers: { Authorization: `Bearer ${token}` } });
        expect(await answer.json()).toMatchObject({ code: "TOKEN_EXPIRED" });
      },
      { timeout: 10_000, interval: 100 },
    );
    await site.runButton(page).click();
    const said = await site.result(page, cheapest, "TROUBLE");
    expect(await said.getByRole("alert").textContent()).toContain("Your session has ended");
    await page.getByLabel(tokenForm.label).fill(` ${await site.mint(server.url, { user: "bea" })} `);
    await page.getByRole("button", { name: tokenForm.button }).click();
    await page.getByText("With the token of bea.").waitFor();
    expect(page.url()).toBe(`${server.url}/`);
    expect(await site.prompt(page).inputValue()).toBe("a bridge");
    expect(site.besidesRefusals(faults)).toEqual([]);
  });
});

describeInChromium("the pages bear", () => {
  /** Whatever ran would tell. */
  const attack = "alert('it ran')";
  const watched = async (path = "/", prepare?: (context: BrowserContext) => Promise<unknown>) => {
    const opened = await site.visit(server.url + path, {}, prepare);
    const ran: string[] = [];
    opened.context.on("dialog", async (dialog) => {
      ran.push(dialog.message());
      await dialog.dismiss();
    });
    return { ...opened, ran };
  };

  it("a model that answers markup, and one whose link is a script or a page", async () => {
    const model = "z-image-turbo";
    const worker = await site.attach(server.url, model);
    const { page, context, faults, ran } = await watched();
    await site.chooseModel(page, "image", model);
    const markup = `<img src=x onerror="${attack}"><script>${attack}</script>`;
    await site.prompt(page).fill(markup);
    const outputs = [
      { text: markup },
      { image_url: `javascript:${attack}` },
      { image_url: `data:text/html,<script>${attack}</script>` },
      { image_url: ` javascript:${attack}`, expires_at: markup },
      [markup, { image_url: [`javascript:${attack}`] }],
    ];
    for (const output of outputs) {
      await site.runButton(page).click();
      const job = await worker.take();
      await worker.done(job?.id ?? "", { output });
      await site.result(page, model);
      const shown = page.locator(".result");
      // A link that the gateway does not know is kept by the gateway, and named by its own.
      const own = await shown.locator(`a[href^="${server.url}/images/"]`).count();
      const foreign = shown.locator(
        `script, iframe, [onerror], :is([src], [href]):not([src^="${server.url}/images/"], [href^="${server.url}/images/"])`,
      );
      expect([output, await foreign.evaluateAll((all) => all.map(({ outerHTML }) => outerHTML))]).toEqual([output, []]);
      if (own > 0) {
        const tab = await context.newPage();
        await tab.goto((await shown.locator("a").getAttribute("href")) ?? "").catch(() => {});
        await tab.close();
      }
      await site.runButton(page).waitFor();
    }
    expect(ran).toEqual([]);
    // The gateway fetches no such link.
    expect(faults.filter((fault) => !fault.includes("status of 502"))).toEqual([]);
  });

  it("a picture that is an SVG with a script, as a result and opened alone", async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${attack}"><script>${attack}</script></svg>`;
    const model = "z-image-turbo";
    const worker = await site.attach(server.url, model);
    const { page, context, faults, ran } = await watched();
    await site.chooseModel(page, "image", model);
    await site.runButton(page).click();
    const job = await worker.take();
    const inline = `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
    await worker.done(job?.id ?? "", { output: { image_url: inline, cost: 0 } });
    await site.result(page, model);
    const tab = await context.newPage();
    const token = await page.evaluate(() => JSON.parse(sessionStorage.getItem("sluice ") ?? "{}").token);
    const headers = { Authorization: `Bearer ${token}` };
    const asked = { type: "image/svg+xml", bytes: Buffer.byteLength(svg) };
    const upload = await fetch(`${server.url}/uploads`, { method: "POST", headers, body: JSON.stringify(asked) });
    const { put, url } = (await upload.json()) as {
      put?: { url: string; headers: Record<string, string> };
      url?: string;
    };
    if (put && url) {
      await fetch(put.url, { method: "PUT", headers: put.headers, body: svg });
      await tab.goto(url);
    }
    expect(ran).toEqual([]);
    expect(faults.filter((fault) => !/policy|Content Security|sandboxed/i.test(fault))).toEqual([]);
  });

  it("titles, prices and limits with markup in them", async () => {
    const markup = `<img src=x onerror="${attack}">`;
    const { page, faults, ran } = await watched("/", (context) =>
      context.route("**/models", async (route) => {
        const answer = await (await route.fetch()).json();
        for (const model of answer.models) Object.assign(model, { title: markup, price: markup });
        await route.fulfill({ json: answer });
      }),
    );
    await page.locator("#model option", { hasText: markup }).first().waitFor({ state: "attached" });
    await page.getByText(`${markup} answers here.`).waitFor();
    expect(await page.locator("[onerror]").count()).toBe(0);
    expect([ran, faults]).toEqual([[], []]);
  });

  it("a prompt that is a link, one that is a script, and one that is huge", async () => {
    const { page, faults, ran } = await watched();
    for (const prompt of ["https://example.com/", `javascript:${attack}`, "</pre>' \"`\\ \u2028".repeat(10)]) {
      await site.prompt(page).fill(prompt);
      await site.runButton(page).click();
      await page.getByAltText(prompt, { exact: true }).waitFor();
      expect(await site.codeIn(page, "Client")).toContain(JSON.stringify(prompt));
    }
    const huge = "x".repeat(1_500_000);
    await site.chooseModel(page, "text", "qwen3-32b-awq");
    await site.prompt(page).evaluate((field: HTMLTextAreaElement, text) => {
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }, huge);
    await page.getByText("Fill in what is needed").or(page.getByText("At most")).waitFor();
    expect(await site.runButton(page).isVisible()).toBe(true);
    expect([ran, site.besidesRefusals(faults)]).toEqual([[], []]);
  });

  it("an address that names a token which is none, or whose user has markup in the name", async () => {
    const claims = Buffer.from(JSON.stringify({ sub: `<img src=x onerror="${attack}">` })).toString("base64url");
    for (const token of ["abc", `x.${claims}.y`]) {
      const { page, faults, ran } = await watched(`/account#token=${token}`);
      expect(page.url()).toBe(`${server.url}/account`);
      await page.getByRole("heading", { name: "The token is not accepted" }).waitFor();
      await page.getByLabel(tokenForm.label).fill("not a token \u00e9");
      await page.getByRole("button", { name: tokenForm.button }).click();
      expect(await page.locator("#token:invalid").count()).toBe(1);
      await page.getByRole("button", { name: "Go on as a visitor" }).click();
      await page.getByText("You are a visitor.").waitFor();
      expect([ran, site.besidesRefusals(faults)]).toEqual([[], []]);
    }
  });

  it("an address whose anchor is no text", async () => {
    const { page, faults } = await watched("/docs/routes#%E0%A4%A");
    await page.evaluate(() => location.assign("#get-usage"));
    await page.locator("[id='get-usage'][open]").waitFor();
    expect(faults).toEqual([]);
  });

  it("a token of somebody else: the page says whose it is, in each tab, and takes one in an open tab too", async () => {
    const [ada, bea] = await Promise.all(["ada", "bea"].map((user) => site.mint(server.url, { user })));
    const { page, context, faults } = await watched(`/#token=${ada}`);
    await page.getByText("With the token of ada.").waitFor();
    const other = await context.newPage();
    await other.goto(`${server.url}/#token=${bea}`);
    await other.getByText("With the token of bea.").waitFor();
    await page.reload();
    await page.getByText("With the token of ada.").waitFor();
    await page.goto(`${server.url}/#token=${bea}`);
    await page.getByText("With the token of bea.").waitFor();
    expect(page.url()).toBe(`${server.url}/`);
    expect(faults).toEqual([]);
  });

  it("the way back to a page that the browser kept, after the token was changed", async () => {
    const [ada, bea] = await Promise.all(["ada", "bea"].map((user) => site.mint(server.url, { user })));
    const { page, faults } = await watched(`/account#token=${ada}`);
    await page.getByText("With the token of ada.").waitFor();
    await page.goto(`${server.url}/gallery#token=${bea}`);
    await page.getByText("Nothing yet.").waitFor();
    await page.getByText("With the token of bea.").waitFor();
    await page.goBack();
    await page.getByText("With the token of bea.").waitFor();
    expect(faults).toEqual([]);
  });

  it.each([
    ["refuses to keep anything", { get: "throw new DOMException('no', 'SecurityError')" }],
    ["has no room", { get: "return real" }],
  ])("a browser that %s", async (_, { get }) => {
    const token = await site.mint(server.url, { user: "ada" });
    const script = `if (location.protocol === "http:") for (const place of ["localStorage", "sessionStorage"]) {
      const real = window[place];
      Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
      Object.defineProperty(window, place, { get() { ${get} } });
    }`;
    const { page, faults } = await watched(`/#token=${token}`, (context) => context.addInitScript(script));
    await page.getByText("With the token of ada.").waitFor();
    await site.prompt(page).fill("a hen");
    await site.runButton(page).click();
    await page.getByAltText("a hen").waitFor();
    await site.codeIn(page, "fetch");
    await page.goto(`${server.url}/docs/routes#get-usage`);
    await page.locator("[id='get-usage'] label", { hasText: "curl" }).click();
    await page.goto(`${server.url}/account`);
    await page.getByText("You are a visitor.").waitFor();
    expect(faults).toEqual([]);
  });

  const made = { url: "https://pictures.example.com/a.jpg", kind: "image" };
  it.each([
    ["no JSON", "{]"],
    ["a list", []],
    ["a list of nothing", [null]],
    ["a number", 5],
    ["nothing", null],
    ["a text", "é"],
    ["members of other kinds", { model: {}, shared: 5, own: [], keepsSeed: "", url: {}, kind: 7, id: [], token: 5 }],
    ["a form's values of other kinds", { shared: { prompt: {}, seed: [], image: 5 }, own: { [cheapest]: null } }],
    ["files that are none", { model: "p-image-edit", shared: { prompt: 7, image: [5, null, { link: 7 }] } }],
    ["a job without its input", { id: "a", model: "x", input: 7, text: 3, state: {} }],
    ["a list of recipes that are none", [5, null, { ...made, input: 7 }, { ...made, model: cheapest, input: [] }]],
    ["a wish for no kind", { url: made.url, kind: {} }],
    ["a session that has no time", { token: "a", expiresAt: 5 }],
  ])("notes of theirs that somebody spoiled: %s", async (_, spoiled) => {
    const text = typeof spoiled === "string" && spoiled.startsWith("{") ? spoiled : JSON.stringify(spoiled);
    const { page, faults } = await watched("/", async (context) => {
      await context.route(made.url, (route) => route.fulfill({ body: site.picture.buffer }));
      await context.addInitScript(
        ([text, wish]) => {
          if (location.protocol !== "http:") return;
          const inAllTabs = ["form", "recipes", "language", "visitor until"];
          const inThisTab = ["job", "other job", "wish", "token", ""];
          for (const name of inAllTabs) localStorage.setItem(`sluice ${name}`, text);
          for (const name of inThisTab) sessionStorage.setItem(`sluice ${name}`, text);
          // A recipe is looked for where the gallery wishes for its file.
          if (text.startsWith("[")) sessionStorage.setItem("sluice wish", wish);
        },
        [text, JSON.stringify(made)] as const,
      );
    });
    await site.runButton(page).waitFor();
    await page.locator(".result[data-state='idle']").waitFor();
    for (const button of await page.getByRole("button", { name: /^Remove/ }).all()) await button.click();
    await site.chooseModel(page, "image", cheapest);
    await site.prompt(page).fill("a harbour");
    await site.runButton(page).click();
    await page.getByAltText("a harbour").waitFor();
    await page.goto(`${server.url}/account`);
    await page.getByText("You are a visitor.").waitFor();
    expect(faults).toEqual([]);
  });

  it("two tabs of one visitor, who has no cookie and nothing that outlives the tab", async () => {
    const { page, context, faults } = await watched();
    await site.runButton(page).click();
    await page.getByAltText("a lighthouse at dusk").waitFor();
    const other = await context.newPage();
    // As on a machine that has other things to do.
    await page.evaluate(
      () =>
        void setTimeout(() => {
          for (const end = Date.now() + 1000; Date.now() < end; );
        }),
    );
    await other.goto(`${server.url}/gallery`);
    await other.locator(".tile").waitFor();
    expect(await context.cookies()).toEqual([]);
    expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain("eyJ");
    expect(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length)).toBe(0);
    expect(faults).toEqual([]);
  });
});

/** The last ones: they change what the server is. */
describeInChromium("a deployment", () => {
  it("that lets no visitors in says at once how to get a token, and takes one pasted", async () => {
    server.set({ ANONYMOUS: "off" });
    const begin = async () => (await fetch(`${server.url}/sessions`, { method: "POST" })).text();
    await vi.waitFor(async () => expect(await begin()).toContain("ANONYMOUS_OFF"), soon);
    const { page, faults } = await site.visit(server.url);
    await page.getByRole("heading", { name: "A token is needed" }).waitFor();
    expect(await page.locator(".trouble").textContent()).toContain("POST /tokens");
    await page.getByLabel(tokenForm.label).fill(await site.mint(server.url, { user: "ada", plan: "pro" }));
    await page.keyboard.press("Enter");
    await page.getByText("With the token of ada.").waitFor();
    await site.runButton(page).click();
    await page.getByAltText("a lighthouse at dusk").waitFor();
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  const host = "https://challenges.cloudflare.com";
  /** The widget does what the test says; sessions begin without asking the gateway. */
  const visitWithWidget = async (answer: string) => {
    const widget = `globalThis.told = { rendered: 0, removed: 0, scripts: (globalThis.told?.scripts ?? 0) + 1 };
    globalThis.turnstile = {
      render(place, { sitekey, callback, "error-callback": fail }) {
        told.rendered++;
        document.querySelector(place).textContent = "Are you a person?";
        globalThis.pass = () => callback("passed by " + sitekey);
        globalThis.fail = fail;
        ${answer}
        return "1";
      },
      remove() { told.removed++; },
    };`;
    const token = await site.mint(server.url, { user: "visitor" });
    const posted: unknown[] = [];
    const opened = await site.visit("about:blank", {}, async (context) => {
      await context.route(`${host}/**`, (route) => route.fulfill({ contentType: "text/javascript", body: widget }));
      await context.route("**/sessions", (route) => {
        posted.push(route.request().postDataJSON());
        return route.fulfill({ json: { token, expiresAt: new Date(Date.now() + 3_600_000).toISOString() } });
      });
    });
    const told = () => opened.page.evaluate(() => (globalThis as unknown as { told: unknown }).told);
    return { ...opened, posted, told };
  };
  const passed = { turnstile: "passed by 1x00000000000000000000AA" };

  it("with Turnstile trusts that one host more, and shows its widget before a session begins", async () => {
    const config = join(server.folder, "wrangler.toml");
    const key = 'TURNSTILE_SITE_KEY = "1x00000000000000000000AA"';
    writeFileSync(config, readFileSync(config, "utf8").replace(/^TURNSTILE_SITE_KEY = .*$/m, key));
    const policyNow = async () => (await fetch(server.url)).headers.get("Content-Security-Policy") ?? "";
    await vi.waitFor(async () => expect(await policyNow()).toContain(host), soon);
    const policy = await policyNow();
    expect(policy).toContain(`script-src 'self' ${host};`);
    expect(policy).toContain(`frame-src ${host};`);
    expect(policy.split("; ").filter((rule) => rule.includes(host))).toHaveLength(2);
    expect(policy).not.toContain("unsafe");
    const { page, faults, posted, told } = await visitWithWidget("setTimeout(pass);");
    await page.goto(server.url);
    await page.getByText("At most").waitFor();
    expect(posted).toEqual([passed]);
    expect(await told()).toEqual({ rendered: 1, removed: 1, scripts: 1 });
    expect(faults).toEqual([]);
  });

  it("with Turnstile gives the visitor all the time that the challenge takes", async () => {
    const { page, context, faults, posted } = await visitWithWidget("");
    await context.clock.install();
    await page.goto(server.url);
    await page.getByText("Are you a person?").waitFor();
    await context.clock.fastForward(120_000);
    await page.evaluate("pass()");
    await page.getByText("At most").waitFor();
    expect(posted).toEqual([passed]);
    expect(faults).toEqual([]);
  });

  it("with Turnstile says that the challenge failed, and shows it again when the visitor wants it", async () => {
    const { page, faults, posted, told } = await visitWithWidget("setTimeout(told.rendered === 1 ? fail : pass);");
    await page.goto(server.url);
    await page.getByRole("heading", { name: "The check that you are a person failed" }).waitFor();
    expect(await told()).toEqual({ rendered: 1, removed: 1, scripts: 1 });
    expect(posted).toEqual([]);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("At most").waitFor();
    expect(await told()).toEqual({ rendered: 2, removed: 2, scripts: 1 });
    expect(faults).toEqual([]);
  });

  it("with Turnstile says that its script cannot be loaded, and loads it when it can be", async () => {
    const { page, context, faults, told } = await visitWithWidget("setTimeout(pass);");
    await context.route(`${host}/**`, (route) => route.abort(), { times: 1 });
    await page.goto(server.url);
    await page.getByText("The check that you are a person cannot be loaded.").waitFor();
    expect(await page.locator("script[src^='https://challenges']").count()).toBe(0);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("At most").waitFor();
    expect(await told()).toEqual({ rendered: 1, removed: 1, scripts: 1 });
    expect(faults.filter((fault) => !fault.includes("ERR_FAILED"))).toEqual([]);
  });
});
