// The types that apps see: made from the catalog, and wrong input fails where it is written.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { clientTypes, clientTypesFile } from "../../src/cli/client-types.ts";
import type { ImageOutput, InputOf, Media, Models, OutputOf, Sluice } from "../../src/client/index.ts";
import { models } from "../../src/models/index.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => {};

it("src/client/models.ts is what `npm run types` writes", () => {
  expect(readFileSync(clientTypesFile, "utf8")).toBe(clientTypes());
});

it("has every model of the catalog", () => {
  const named = [...clientTypes().matchAll(/^ {2}"([^"]+)": \{$/gm)].map(([, id]) => id);
  expect(named).toEqual(models.map(({ id }) => id));
});

/** Checked by `tsc`, never called. */
async function typed(sluice: Sluice, file: File): Promise<void> {
  const film = await sluice.run("wan-2-6-i2v", { prompt: "a", image: file, size: "1280*720", duration: 5 });
  film.output.video_url.slice();
  // @ts-expect-error: a film has no picture
  film.output.image_url;
  // @ts-expect-error: the prompt is missing
  await sluice.run("wan-2-6-i2v", { image: file });
  // @ts-expect-error: a size that this model does not make
  await sluice.run("wan-2-6-i2v", { prompt: "a", image: file, size: "1*1" });
  // @ts-expect-error: a misspelt member
  await sluice.run("black-forest-labs-flux-1-schnell", { prompt: "a", sede: 7 });
  // @ts-expect-error: a number is no prompt
  await sluice.estimate("black-forest-labs-flux-1-schnell", { prompt: 7 });
  // @ts-expect-error: seed is a number
  for await (const _ of sluice.stream("black-forest-labs-flux-1-schnell", { prompt: "a", seed: "7" })) break;
  for await (const { text } of sluice.stream("gpt-oss-120b", { prompt: "a" })) text.join("");
  const own = await sluice.run("an-endpoint-of-ours", { whatever: [1] });
  // @ts-expect-error: nobody knows what it makes
  own.output.image_url;
}

describe("types", () => {
  it("refuse wrong input where it is written", () => {
    expect(typed).toBeTypeOf("function");
  });

  it("are those of the model", () => {
    holds<Same<Models["wan-2-6-i2v"]["input"]["image"], Media>>();
    holds<Same<Models["wan-2-6-i2v"]["input"]["size"], "1280*720" | "1920*1080" | undefined>>();
    holds<Same<OutputOf<"black-forest-labs-flux-1-schnell">, ImageOutput>>();
    holds<Same<InputOf<"an-endpoint-of-ours">, Readonly<Record<string, unknown>>>>();
  });
});
