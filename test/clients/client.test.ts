// The client against `npm start`, in Node; and what docs/client.md shows of it.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSluice } from "../../src/client/index.ts";
import { blocksUnder, runBlock } from "../e2e/support/readme.ts";
import { type Claim, claims, crowd } from "./client-claims.ts";
import { flux, Stage } from "./client-stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage?.close());

const block = (document: string, heading: string, language: string) =>
  blocksUnder(document, heading, language)[0] ?? "";

const check = async ({ scenario, given, holds }: Omit<Claim, "name">) => {
  holds((await scenario(stage.world(), given as never)) as never);
};

it("in Node runs many jobs at once", () => check(crowd()));

// Each of them waits most of its time.
describe.concurrent("in Node", () => {
  it.each(claims)("$name", check);

  it("is told why a file is refused, and submits nothing", async () => {
    const sluice = stage.client();
    const page = new Blob(["<h1>no picture</h1>"], { type: "image/png" });
    const running = sluice.run("qwen-image-edit", { prompt: "a", image: page });
    await expect(running).rejects.toMatchObject({ name: "SluiceError", status: 415 });
    expect((await sluice.usage()).jobs).toEqual([]);
  });

  it("takes a job up again that was submitted before", async () => {
    const sluice = stage.client();
    const { id } = await sluice.submit("wan-2-6-t2v", { prompt: "a lighthouse" });
    expect(await sluice.follow("wan-2-6-t2v", id)).toMatchObject({ id, status: "COMPLETED" });
  });
});

describe.concurrent("docs", () => {
  it.each([
    ["docs/clients.md", block("docs/clients.md", "With the client", "ts")],
    ["Run a model", block("docs/client.md", "Run a model", "ts")],
    ["Run a model, and hear of it", blocksUnder("docs/client.md", "Run a model", "ts")[1] ?? ""],
    ["Whose token", block("docs/client.md", "Whose token", "ts")],
    ["Files", block("docs/client.md", "Files", "ts")],
    ["Stop", block("docs/client.md", "Stop", "ts")],
    ["Stream", block("docs/client.md", "Stream", "ts")],
  ])("%s: what it shows runs", async (_name, lines) => {
    const said: unknown[] = [];
    const user = stage.newUser();
    const photo = async () => {
      const small = { prompt: "waves", width: 256, height: 256 };
      const { output } = await stage.client().run(flux, small);
      return (await fetch(output.image_url)).blob();
    };
    const names = {
      createSluice,
      url: stage.url,
      console: { log: (...words: unknown[]) => said.push(...words) },
      write: (piece: string) => said.push(piece),
      form: { photo: { files: /form\.photo/.test(lines) ? [await photo()] : [] } },
      fetch: async () => Response.json(await stage.mint(user)),
      ...(!/const sluice/.test(lines) && {
        sluice: createSluice({ url: stage.url, token: () => stage.mint(user) }),
      }),
    };
    const code = lines.replace("http://localhost:8787", stage.url);
    await runBlock(`${code}\n${/const sluice/.test(code) ? "console.log((await sluice.usage()).plan);" : ""}`, names);
    expect(said).not.toEqual([]);
  });
});
