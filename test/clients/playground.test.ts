// The playground as `npm start` serves it, in a real browser: every model, and everything that can be done with one.
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { describeInChromium } from "./chromium.ts";
import { film, silence } from "./media-files.ts";
import * as site from "./site.ts";
import { cheapest, patience, picture } from "./site.ts";

describeInChromium("the playground", () => {
  let server: NpmStart;
  beforeAll(async () => {
    server = await NpmStart.start({ settings: { SESSION_PLAN: "developer" } });
  });
  afterAll(async () => {
    await site.closeBrowser();
    await server.stop();
  });

  it("makes the first picture by one click, and says its price before and after", async () => {
    const { page, faults } = await site.visit(server.url);
    await page.getByLabel("Width").fill("");
    await page.getByLabel("Height").fill("");
    await page.getByText("At most $0.00252").waitFor();
    await site.runButton(page).click();
    const made = page.getByAltText("a lighthouse at dusk");
    await vi.waitFor(
      async () => expect(await made.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1024),
      patience,
    );
    expect(await page.locator(".result .hint").textContent()).toMatch(
      /^\$0\.00252 · [\d.]+ s · seed \d+ · link ends in 7 days$/,
    );
    const { share, paintMs } = await page.evaluate(async () => {
      const { width, height, top } = (document.querySelector(".results") as Element).getBoundingClientRect();
      const seen = width * (Math.min(innerHeight, top + height) - top);
      const [paint] = performance.getEntriesByName("first-contentful-paint");
      return { share: seen / (innerWidth * innerHeight), paintMs: paint?.startTime ?? Number.NaN };
    });
    expect(share).toBeGreaterThanOrEqual(0.5);
    expect(paintMs).toBeLessThan(1000);
    expect(faults).toEqual([]);
  });

  it("says that results are samples, unless a model service is connected", async () => {
    const { page, faults } = await site.visit(server.url);
    const note = page.getByText("No model service is connected here");
    await note.waitFor();
    await page.route("**/models", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, samples: false } });
    });
    await page.reload();
    await page.getByText("At most").waitFor();
    expect(await note.count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it.each([
    [360, 740],
    [768, 1024],
    [1280, 800],
  ])("shifts nothing while it opens and makes a picture, on a screen of %i by %i", async (width, height) => {
    const { page, faults } = await site.visit(server.url, { viewport: { width, height } });
    const entries = await page.evaluateHandle(() => {
      const seen: PerformanceEntry[] = [];
      const observer = new PerformanceObserver((list) => seen.push(...list.getEntries()));
      observer.observe({ type: "layout-shift", buffered: true });
      return seen;
    });
    await page.getByText("At most").waitFor();
    await site.runButton(page).click();
    await page.getByAltText("a lighthouse at dusk").waitFor();
    await site.runButton(page).waitFor();
    const shifts = await entries.evaluate(async (seen) => {
      const drawn = () => new Promise((resolve) => requestAnimationFrame(resolve));
      // A shift is told after the frame that has it.
      for (let frames = 0; frames < 3; frames++) await drawn();
      return seen.map((entry) => entry.toJSON());
    });
    expect(shifts).toEqual([]);
    expect(faults).toEqual([]);
  });

  it("has a form for every model, and runs each with what it requires to its end", { timeout: 300_000 }, async () => {
    const { models } = (await (await fetch(`${server.url}/models`)).json()) as {
      models: { id: string; kind: string }[];
    };
    expect(models).toHaveLength(40);
    const own = Object.fromEntries(models.map(({ id }) => [id, site.smallest]));
    const {
      page: first,
      context,
      faults,
    } = await site.visit(server.url, {}, (context) =>
      context.addInitScript(
        (form) => location.protocol === "http:" && localStorage.setItem("sluice form", form),
        JSON.stringify({ own }),
      ),
    );
    const tabs = [first, ...(await Promise.all([1, 2, 3].map(() => context.newPage())))];
    const files: Record<string, { name: string; mimeType: string; buffer: Buffer }> = {
      "audio/*": silence,
      "video/*": film,
    };
    const left = [...models];
    await Promise.all(
      tabs.map(async (page) => {
        if (page !== first) await page.goto(server.url);
        for (let model = left.shift(); model; model = left.shift()) {
          await site.chooseModel(page, model.kind, model.id);
          for (const field of await page.locator(".fields textarea[required]").all()) await field.fill("a lighthouse");
          const empty = page.locator(".drop:has(input[type=url]:required) input[type=file]");
          while ((await empty.count()) > 0) {
            const accepts = (await empty.first().getAttribute("accept")) ?? "";
            const before = await page.locator(".file").count();
            await empty.first().setInputFiles(files[accepts] ?? picture);
            await page.locator(".file").nth(before).waitFor();
          }
          await site.runButton(page).click();
          await site.result(page, model.id);
        }
      }),
    );
    expect(faults).toEqual([]);
  });

  it("opens each kind with a model that words are enough for, and later with the one chosen before", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.runButton(page).waitFor();
    for (const kind of ["Film", "Speech", "Text", "Picture"]) {
      await site.chooseKind(page, kind);
      await page.locator(".fields").first().waitFor();
      expect([kind, await page.locator(".drop input:required").count()]).toEqual([kind, 0]);
    }
    await site.chooseModel(page, "video", "wan-2-6-i2v");
    await site.chooseKind(page, "Picture");
    expect(await page.locator("#model").inputValue()).toBe(cheapest);
    await page.reload();
    await site.chooseKind(page, "Film");
    expect(await page.locator("#model").inputValue()).toBe("wan-2-6-i2v");
    expect(faults).toEqual([]);
  });

  it("has an address for each kind, which a link may have, and compares models of one kind alone", async () => {
    const { page, faults } = await site.visit(`${server.url}/?kind=video`);
    const chosen = page.locator(".choices input:checked").first();
    const isKind = (label: string) =>
      vi.waitFor(async () => expect(await chosen.locator("..").textContent()).toBe(label), patience);
    await isKind("Film");
    await site.chooseKind(page, "Speech");
    expect(page.url()).toBe(`${server.url}/?kind=speech`);
    await page.reload();
    await isKind("Speech");
    await site.chooseModel(page, "image", cheapest);
    expect(page.url()).toBe(`${server.url}/`);
    await page.getByText("Compare with another model").click();
    await page.locator("#rival").selectOption("p-image-t2i");
    expect(await page.locator(".result").count()).toBe(2);
    await site.chooseKind(page, "Film");
    expect(await page.locator(".result").count()).toBe(1);
    await page.goto(`${server.url}/?kind=nothing`);
    await isKind("Film");
    expect(faults).toEqual([]);
  });

  it("takes a file to an edit, and the edit to a film", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image-edit", "p-image-edit");
    await page.locator(".drop input[type=file]").first().setInputFiles(picture);
    // What is typed while a file is on its way stays.
    await site.prompt(page).fill("make it winter");
    await page.locator(".file").waitFor();
    expect(await site.prompt(page).inputValue()).toBe("make it winter");
    await site.runButton(page).click();
    await site.result(page, "p-image-edit");
    await page.getByLabel("Use as input of").selectOption("wan-2-6-i2v");
    await page.locator(".file").waitFor();
    const [name, remove] = await page
      .locator(".file")
      .evaluate(({ children }) => [...children].slice(1).map((child) => child.getBoundingClientRect().toJSON()));
    expect(name.right).toBeLessThanOrEqual(remove.left);
    await site.runButton(page).click();
    const made = (await site.result(page, "wan-2-6-i2v")).locator("video");
    await vi.waitFor(
      async () => expect(await made.evaluate((video: HTMLVideoElement) => video.videoWidth)).toBeGreaterThan(0),
      patience,
    );
    expect(faults).toEqual([]);
  });

  it("takes a file that is dropped, pasted or photographed, its link, and one of the gallery", async () => {
    const elsewhere = "https://pictures.example.com/a.jpg";
    const { page, faults } = await site.visit(server.url, { hasTouch: true, isMobile: true }, (context) =>
      context.route(elsewhere, (route) => route.fulfill({ contentType: "image/jpeg", body: picture.buffer })),
    );
    await site.runButton(page).click();
    await site.result(page, cheapest);
    await site.chooseModel(page, "image-edit", "qwen-image-edit");
    const taken = page.locator(".file .name");
    const give = (type: "drop" | "paste", name: string, mimeType: string) =>
      page.evaluate(
        ([type, name, mimeType]) => {
          const data = new DataTransfer();
          const start = new Uint8Array([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1]);
          data.items.add(new File([start], name, { type: mimeType }));
          const options = { bubbles: true, cancelable: true };
          const event =
            type === "drop"
              ? new DragEvent("drop", { dataTransfer: data, ...options })
              : new ClipboardEvent("paste", { clipboardData: data, ...options });
          document.querySelector(type === "drop" ? ".drop" : "body")?.dispatchEvent(event);
        },
        [type, name, mimeType] as const,
      );
    await give("drop", "dropped.jpg", "image/jpeg");
    await taken.filter({ hasText: "dropped.jpg" }).waitFor();
    await give("paste", "pasted.jpg", "image/jpeg");
    await taken.filter({ hasText: "pasted.jpg" }).waitFor();
    await give("drop", "notes.txt", "text/plain");
    await page.getByText("notes.txt: This is not a picture.").waitFor();
    const camera = page.getByLabel("Camera");
    expect([await camera.getAttribute("capture"), await camera.getAttribute("accept")]).toEqual([
      "environment",
      "image/*",
    ]);
    await camera.setInputFiles({ ...picture, name: "photo.jpg" });
    await taken.filter({ hasText: "photo.jpg" }).waitFor();
    await page.getByLabel("Link of a picture for image").fill(elsewhere);
    await page.keyboard.press("Enter");
    await taken.filter({ hasText: "a.jpg" }).waitFor();
    await page.getByRole("button", { name: "From your gallery" }).click();
    const dialog = page.getByRole("dialog", { name: "Your gallery" });
    await dialog.getByText("Uploads").click();
    await vi.waitFor(async () => expect(await dialog.locator(".tile").count()).toBe(3), patience);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "From your gallery" }).click();
    await dialog.locator(".tile", { hasText: cheapest }).getByRole("button", { name: "Take it" }).click();
    await dialog.waitFor({ state: "detached" });
    await vi.waitFor(async () => expect(await taken.textContent()).not.toBe("a.jpg"), patience);
    await site.runButton(page).click();
    await site.result(page, "qwen-image-edit");
    expect(faults).toEqual([]);
  });

  it("says which of several files is wrong, and which links are not taken", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image-edit", "qwen-image-edit-2511");
    const notes = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("a") };
    await page.locator(".drop input[type=file]").first().setInputFiles([notes, picture]);
    await page.locator(".file", { hasText: "picture.jpg" }).waitFor();
    const says = page.locator(".drop .fault");
    await vi.waitFor(async () => expect(await says.textContent()).toBe("notes.txt: This is not a picture."), patience);
    const link = page.getByLabel("Link of a picture for images");
    await link.fill("http://pictures.example.com/a.jpg");
    await link.press("Enter");
    expect(await says.textContent()).toBe("A link begins with https://.");
    expect(await page.locator(".file", { hasText: "a.jpg" }).count()).toBe(0);
    await link.fill(`${server.url}/docs/playground.webp`);
    await link.press("Enter");
    await page.locator(".file", { hasText: "playground.webp" }).waitFor();
    expect(await says.count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it("says in plain words why a file is not taken", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image-edit", "p-image-edit");
    const input = page.locator(".drop input[type=file]").first();
    const says = page.locator(".drop .fault");
    const isSaid = (words: string) =>
      vi.waitFor(async () => expect(await says.textContent()).toBe(`picture.jpg: ${words}`), patience);
    await input.setInputFiles({ ...picture, buffer: Buffer.alloc(0) });
    await isSaid("The file is empty.");
    await input.setInputFiles({ ...picture, mimeType: "image/bmp", buffer: Buffer.from("BM no picture") });
    await isSaid("Files of this kind are not taken. These are: png, jpeg, gif, webp, avif.");
    await input.setInputFiles({ ...picture, buffer: Buffer.from("no picture") });
    await isSaid("What is in the file is not what its name says.");
    await page.locator(".drop").evaluate((field) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(65 * 1024 ** 2)], "picture.jpg", { type: "image/jpeg" }));
      field.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    });
    await isSaid("The file is too large. At most 64 MB are taken.");
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("takes a picture for what it is, whatever its name says", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image-edit", "p-image-edit");
    const announced = page.waitForRequest(
      (request) => request.method() === "POST" && request.url().endsWith("/uploads"),
    );
    const named = { ...picture, name: "picture.png", mimeType: "image/png" };
    await page.locator(".drop input[type=file]").first().setInputFiles(named);
    expect((await announced).postDataJSON()).toMatchObject({ type: "image/jpeg" });
    await page.locator(".file", { hasText: "picture.png" }).waitFor();
    expect(faults).toEqual([]);
  });

  it("says the range of a number, and marks the one that is refused", async () => {
    const { page, faults } = await site.visit(server.url);
    const width = page.getByLabel("Width");
    await page.getByText("From 256 to 1536.").first().waitFor();
    expect(await width.getAttribute("aria-invalid")).toBe("false");
    for (const refused of ["2000", "255"]) {
      await width.fill(refused);
      await page.getByText(/^Width: /).waitFor();
      expect([refused, await width.getAttribute("aria-invalid")]).toEqual([refused, "true"]);
    }
    await width.fill("512");
    await page.getByText("At most").waitFor();
    expect(await width.getAttribute("aria-invalid")).toBe("false");
    expect(faults).toEqual([]);
  });

  it("says why there is no price, and names each control once", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image", "qwen-image-t2i-lora");
    await page.getByText("More options").click();
    await page.getByLabel("Loras").fill("[{");
    const price = page.locator(".go .hint");
    await vi.waitFor(async () => expect(await price.textContent()).toMatch(/^input\.loras/), patience);
    await site.chooseModel(page, "text", "moonshot-kimi");
    expect(await page.getByLabel("Model", { exact: true }).count()).toBe(1);
    await page.getByLabel("Variant of the model").waitFor();
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("shows text as it arrives, and cancels it", async () => {
    const model = "qwen3-32b-awq";
    const worker = await site.attach(server.url, model);
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "text", model);
    const begin = async (words: string) => {
      await site.prompt(page).fill(words);
      await site.runButton(page).click();
      const job = await worker.take();
      expect(job?.input["prompt"]).toBe(words);
      return job?.id ?? "";
    };
    const written = page.locator(".result .text");
    const first = await begin("a long story");
    await page.getByText("Making it").waitFor();
    await worker.emit(first, { text: ["Once upon "] });
    await vi.waitFor(async () => expect(await written.textContent()).toBe("Once upon "), patience);
    await worker.emit(first, { text: ["a time"] });
    await vi.waitFor(async () => expect(await written.textContent()).toBe("Once upon a time"), patience);
    expect(await site.runButton(page).count()).toBe(0);
    await page.getByRole("button", { name: "Cancel" }).click();
    await site.runButton(page).waitFor();
    expect(await written.textContent()).toBe("Once upon a time");
    await vi.waitFor(async () => expect(await worker.stops()).toEqual([first]), patience);
    expect(await page.locator(".result [role=status]").textContent()).toMatch(/^Cancelled\. It cost \$0\.0+\d+\.$/);
    const second = await begin("a short story");
    await worker.done(second, { output: [{ choices: [{ tokens: ["The end."] }] }] });
    await site.result(page, model);
    expect(await written.textContent()).toBe("The end.");
    expect(faults).toEqual([]);
  });

  it("shows two models beside each other, with the same seed", async () => {
    const { page, faults } = await site.visit(server.url);
    await page.getByText("Compare with another model").click();
    await page.locator("#rival").selectOption("p-image-t2i");
    await page.getByText("At most $0.00516 for both").waitFor();
    await site.runButton(page).click();
    const facts = async (id: string) => (await site.result(page, id)).locator(".hint").textContent();
    const [left, right] = [await facts(cheapest), await facts("p-image-t2i")];
    expect(/seed \d+/.exec(left ?? "")?.[0]).toBe(/seed \d+/.exec(right ?? "")?.[0]);
    expect(left).toMatch(/seed \d+/);
    const names = () => page.locator(".result > .name").allInnerTexts();
    expect(await names()).toEqual(["Flux Schnell", "P-Image T2I"]);
    // A result keeps its name when the form is for another model, and so does a failure.
    await page.locator("#model").selectOption("z-image-turbo");
    expect(await names()).toEqual(["Flux Schnell", "P-Image T2I"]);
    await site.prompt(page).fill("a fox [fail]");
    await site.runButton(page).click();
    await site.result(page, "z-image-turbo", "TROUBLE");
    expect(await names()).toEqual(["Z-Image Turbo", "P-Image T2I"]);
    expect(faults).toEqual([]);
  });

  it("opens what hides a wrong value, and says what is wrong where the price would stand", async () => {
    const { page, faults } = await site.visit(server.url);
    const more = page.locator("details", { hasText: "More options" });
    await more.locator("summary").click();
    const steps = page.getByLabel("Num inference steps");
    await steps.fill("999");
    await more.locator("summary").click();
    await page.getByText(/^Num inference steps: .*less than or equal to/).waitFor();
    await site.runButton(page).click();
    expect(await more.getAttribute("open")).toBe("");
    expect(await steps.evaluate((field) => field === document.activeElement)).toBe(true);
    await steps.fill("4");
    await page.getByText("At most").waitFor();
    await site.prompt(page).fill("");
    await page.getByText("Fill in what is needed to see the price.").waitFor();
    expect(faults).toEqual([]);
  });

  it("keeps a seed that is locked or typed, and takes a new one else", async () => {
    const { page, faults } = await site.visit(server.url);
    const seed = page.getByLabel("Seed", { exact: true });
    const run = async () => {
      await site.runButton(page).click();
      await site.runButton(page).waitFor();
      return seed.inputValue();
    };
    const first = await run();
    expect(await run()).not.toBe(first);
    await page.getByLabel("Keep the seed").check();
    const kept = await seed.inputValue();
    expect(await run()).toBe(kept);
    await page.getByLabel("Keep the seed").uncheck();
    expect(await run()).not.toBe(kept);
    await seed.fill("7");
    expect(await run()).toBe("7");
    expect(faults).toEqual([]);
  });

  it.each(["no-preference", "reduce"] as const)(
    "brings what is made, and what went wrong, into view on a phone, with motion %s",
    async (reducedMotion) => {
      const viewport = { width: 390, height: 844 };
      const { page, faults } = await site.visit(server.url, {
        viewport,
        hasTouch: true,
        isMobile: true,
        reducedMotion,
      });
      const isInView = () =>
        vi.waitFor(async () => {
          const { top, bottom } = await page
            .locator(".result")
            .evaluate((panel) => panel.getBoundingClientRect().toJSON());
          expect(top).toBeGreaterThanOrEqual(0);
          expect(bottom).toBeLessThanOrEqual(viewport.height + 1);
        }, patience);
      for (const [words, state] of [
        ["a fox", "COMPLETED"],
        ["a fox [fail]", "TROUBLE"],
      ] as const) {
        await site.prompt(page).fill(words);
        await site.runButton(page).click();
        await site.result(page, cheapest, state);
        await isInView();
      }
      expect(faults).toEqual([]);
    },
  );

  it("is worked by the keyboard alone", async () => {
    const { page, faults } = await site.visit(server.url);
    await site.runButton(page).waitFor();
    const reach = async (name: string) => {
      for (let presses = 0; presses < 40; presses++) {
        await page.keyboard.press("Tab");
        const focused = page.locator(":focus");
        const says = await focused.evaluate(
          (element) => `${element.id} ${element.parentElement?.textContent} ${(element as HTMLInputElement).name}`,
        );
        if (says.includes(name)) return focused;
      }
      throw new Error(`${name} is not reached by Tab`);
    };
    expect(await (await reach("Skip to the content")).isVisible()).toBe(true);
    await reach("Picture");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowLeft");
    await (await reach("prompt")).fill("a fox");
    await reach("Run");
    await page.keyboard.press("Enter");
    await page.getByAltText("a fox").waitFor();
    await reach("Client");
    await page.keyboard.press("ArrowRight");
    expect(await page.locator(".snippets pre").textContent()).toContain("useJob");
    await site.prompt(page).fill("a hen");
    await page.keyboard.press("Control+Enter");
    await page.getByAltText("a hen").waitFor();
    expect(faults).toEqual([]);
  });

  it("keeps the focus where it was, or near, when what had it goes", async () => {
    const model = "z-image-turbo";
    const worker = await site.attach(server.url, model);
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image", model);
    const focused = () =>
      page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent);
    const begin = async () => {
      await site.runButton(page).press("Enter");
      const job = await worker.take();
      await page.getByText("Making it").waitFor();
      return job?.id ?? "";
    };
    await begin();
    expect(await focused()).toBe("Running …");
    // It is one job, however often it is pressed.
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Cancel" }).press("Enter");
    await site.runButton(page).waitFor();
    await page.getByText("Cancelled. It cost nothing.").waitFor();
    expect(await focused()).toBe("Z-Image Turbo");
    const second = await begin();
    await page.getByRole("button", { name: "Cancel" }).focus();
    await worker.done(second, { error: "no" });
    await page.getByRole("heading", { name: "The model failed" }).waitFor();
    expect(await focused()).toBe("Z-Image Turbo");
    await page.getByRole("button", { name: "Try again" }).press("Enter");
    const third = await worker.take();
    await page.getByText("Making it").waitFor();
    expect(await focused()).toBe("Z-Image Turbo");
    await worker.done(third?.id ?? "", { output: { image_url: "data:image/png;base64,AAAA", cost: 0 } });
    await site.runButton(page).waitFor();
    await site.chooseModel(page, "image-edit", "p-image-edit");
    await page.locator(".drop input[type=file]").first().setInputFiles(picture);
    await page.getByRole("button", { name: "Remove" }).press("Enter");
    await page.locator(".file").waitFor({ state: "detached" });
    expect(await page.locator(".drop").first().locator(":focus").count()).toBe(1);
    expect(faults).toEqual([]);
  });

  it("remembers the form, and takes up its job, when the page is loaded anew", async () => {
    const model = "z-image-turbo";
    const worker = await site.attach(server.url, model);
    const { page, faults } = await site.visit(server.url);
    await site.chooseModel(page, "image", model);
    await site.prompt(page).fill("a castle");
    await site.runButton(page).click();
    const job = await worker.take();
    const inline = `data:image/jpeg;base64,${picture.buffer.toString("base64")}`;
    await page.getByText("Making it").waitFor();
    await page.reload();
    await page.getByText("Making it").waitFor();
    expect(await site.prompt(page).inputValue()).toBe("a castle");
    expect(await page.locator("#model").inputValue()).toBe(model);
    await worker.done(job?.id ?? "", { output: { image_url: inline, cost: 0.005 } });
    await page.getByAltText("a castle").waitFor();
    // So it does with the result, until the next run begins or the gateway knows it no more.
    await page.goto(`${server.url}/gallery`);
    await page.getByText("Made here").waitFor();
    await page.goBack();
    await page.getByAltText("a castle").waitFor();
    expect(await page.locator(".result .hint").textContent()).toMatch(/^\$0\.005 · /);
    await site.runButton(page).click();
    await page.getByText("Asking …").or(page.getByText("Waiting for a worker …")).waitFor();
    await worker.done((await worker.take())?.id ?? "", { error: "no" });
    await site.result(page, model, "TROUBLE");
    await page.reload();
    await page.getByText("Z-Image Turbo answers here.").waitFor();
    await page.evaluate(() =>
      sessionStorage.setItem("sluice job", JSON.stringify({ model: "z-image-turbo", id: "gone" })),
    );
    await page.reload();
    await page.getByText("Z-Image Turbo answers here.").waitFor();
    await vi.waitFor(async () => expect(await page.evaluate(() => sessionStorage.getItem("sluice job"))).toBeNull());
    expect(site.besidesRefusals(faults)).toEqual([]);
  });

  it("says what it is where JavaScript is off, and leads to the docs", async () => {
    const { page } = await site.visit(server.url, { javaScriptEnabled: false });
    expect(await page.locator("noscript").innerText()).toContain("Sluice stands in front of AI models");
    await page.getByRole("link", { name: "the docs" }).click();
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Docs");
  });
});
