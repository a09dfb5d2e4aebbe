// The browser of this machine. Playwright downloads none: it drives the one that is there.
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { beforeEach, describe, type TestContext } from "vitest";

const usualPlaces = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/** Where it is; `CHROMIUM` goes before the usual places. Undefined where there is none. */
export const chromiumPath = [process.env["CHROMIUM"] ?? usualPlaces].flat().find((path) => existsSync(path));

/** Leaves the test out where there is no browser, and lets the report say so. */
export const needsChromium = ({ skip }: TestContext) =>
  skip(!chromiumPath, "no Chromium is found; CHROMIUM may say where one is");

export function describeInChromium(name: string, tests: () => void): void {
  describe(name, () => {
    beforeEach(needsChromium);
    tests();
  });
}

/** It asks nobody on the network for anything, and has no sandbox, which root may not have. */
export async function openChromium(): Promise<Browser> {
  if (!chromiumPath) throw new Error("there is no Chromium");
  const alone = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", ...alone];
  return chromium.launch({ executablePath: chromiumPath, args });
}
