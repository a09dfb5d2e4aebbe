// The bundle that one start keeps for the next: only as long as nothing that it was made of has changed.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { keepBundle, readKept } from "../../src/cli/kept-bundle.ts";
import { root } from "../../src/cli/wrangler.ts";

let state: string;
let source: string;
const bundle = () => ({ code: "code", sourceMap: "map", inputs: ["src/index.ts", relative(root, source)] });
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "sluice-"));
  source = join(state, "source.ts");
  writeFileSync(source, "1");
  keepBundle(state, bundle());
});
afterEach(() => rmSync(state, { recursive: true }));

it("is there while its sources are as they were, whenever they were written", () => {
  writeFileSync(source, "1");
  expect(readKept(state)).toMatchObject(bundle());
});

it.each<[string, () => void]>([
  ["a source has other bytes", () => writeFileSync(source, "2")],
  ["a source is gone", () => rmSync(source)],
  ["its file is damaged", () => writeFileSync(join(state, "bundle.json"), `{"digest":"`)],
])("is not there where %s", (_, change) => {
  change();
  expect(readKept(state)).toBeUndefined();
});

it("is not kept where a source vanished while it was built", () => {
  rmSync(source);
  rmSync(join(state, "bundle.json"));
  keepBundle(state, bundle());
  expect(readKept(state)).toBeUndefined();
});
