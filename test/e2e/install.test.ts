// What runs before every script: installs where something is missing, and does nothing where nothing is. npm is a stand-in here.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "./support/checkout.ts";

const lockfile = {
  packages: {
    "": { name: "sluice" },
    "node_modules/hono": { version: "4.0.0" },
    "node_modules/binary-of-another-system": { version: "1.0.0", optional: true },
  },
};
const installed = { packages: { "node_modules/hono": { version: "4.0.0" } } };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-"));
  mkdirSync(join(folder, "src/cli"), { recursive: true });
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "node_modules"));
  cpSync(fileURLToPath(new URL("../../src/cli/install.mjs", import.meta.url)), join(folder, "src/cli/install.mjs"));
  write("package-lock.json", lockfile, 2000);
  write("node_modules/.package-lock.json", installed, 1000);
  npmEndsWith(0);
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("install.mjs", () => {
  it("does nothing where each package is there, though the lockfile is newer", async () => {
    expect(await install()).toEqual({ status: 0, output: "", asked: undefined });
  });

  it("does not even compare where the last install is newer than the lockfile", async () => {
    write("node_modules/.package-lock.json", "not read", 3000);
    expect(await install()).toEqual({ status: 0, output: "", asked: undefined });
  });

  it.each<[string, () => void]>([
    ["nothing was installed", () => rmSync(join(folder, "node_modules"), { recursive: true })],
    ["an install broke off", () => rmSync(join(folder, "node_modules/.package-lock.json"))],
    ["a package is missing", () => write("node_modules/.package-lock.json", { packages: {} }, 1000)],
    [
      "a package has another version",
      () => write("node_modules/.package-lock.json", { packages: { "node_modules/hono": { version: "3.9.9" } } }, 1000),
    ],
  ])("installs where %s", async (_, change) => {
    change();
    const { status, output, asked } = await install();
    expect(status).toBe(0);
    expect(output).toBe("Installing the packages of package-lock.json …\n");
    expect(asked).toMatch(/^ci /);
  });

  it("fails where the install fails", async () => {
    rmSync(join(folder, "node_modules"), { recursive: true });
    npmEndsWith(7);
    expect(await install()).toMatchObject({ status: 7 });
  });
});

function write(path: string, content: unknown, atSecond: number): void {
  const file = join(folder, path);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  utimesSync(file, atSecond, atSecond);
}

/** An npm that notes what it was asked. */
function npmEndsWith(status: number): void {
  const npm = join(folder, "bin/npm");
  writeFileSync(npm, `#!/bin/sh\necho "$@" > asked\nexit ${status}\n`);
  chmodSync(npm, 0o755);
}

async function install(): Promise<{ status: number | null; output: string; asked: string | undefined }> {
  const process = run(folder, ["src/cli/install.mjs"], { PATH: `${join(folder, "bin")}:/usr/bin:/bin` });
  const status = await process.ended;
  const asked = join(folder, "asked");
  return { status, output: process.output(), asked: existsSync(asked) ? readFileSync(asked, "utf8") : undefined };
}
