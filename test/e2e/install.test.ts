// What runs before every script: installs where something is missing, and does nothing where nothing is. npm is a
// stand-in here, and a Node without TypeScript stands for one that is too old.
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
import { dirname, join } from "node:path";
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
let isNewEnough: boolean;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-"));
  mkdirSync(join(folder, "src/cli"), { recursive: true });
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "node_modules"));
  cpSync(fileURLToPath(new URL("../../src/cli/install.mjs", import.meta.url)), join(folder, "src/cli/install.mjs"));
  write("package-lock.json", lockfile, 2000);
  write("node_modules/.package-lock.json", installed, 1000);
  npmEndsWith(0);
  isNewEnough = true;
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("install.mjs", () => {
  it("does nothing where each package is there, though the lockfile is newer", async () => {
    expect(await install()).toEqual({ status: 0, output: "", asked: undefined });
  });

  it("installs for a start only what a start runs, and adds the rest when it is asked for", async () => {
    const tools = { "node_modules/vitest": { version: "4.0.0", dev: true } };
    write("package-lock.json", { packages: { ...lockfile.packages, ...tools } }, 2000);
    expect(await install("--omit=dev")).toEqual({ status: 0, output: "", asked: undefined });
    expect((await install()).asked).toMatch(/^install --no-save (?!.*--omit=dev)/);
    rmSync(join(folder, "node_modules"), { recursive: true });
    expect((await install("--omit=dev")).asked).toMatch(/^ci .*--omit=dev$/m);
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

  it("installs a folder that it is given, where it is, beside what every script needs", async () => {
    write("test/clients/package-lock.json", lockfile, 2000);
    const { status, output } = await install("test/clients");
    expect(status).toBe(0);
    expect(output).toBe("Installing the packages of test/clients/package-lock.json …\n");
    expect(readFileSync(join(folder, "test/clients/asked"), "utf8")).toMatch(/^ci /);
    expect(existsSync(join(folder, "asked"))).toBe(false);
  });
});

describe("a Node that is too old", () => {
  const provided = "node_modules/.cache/sluice-node";
  beforeEach(() => {
    mkdirSync(join(folder, "node_modules/.bin"));
    write(
      "src/cli/node/package.json",
      { optionalDependencies: { "node-of-another": "22.0.0", "node-of-this": "22.0.0" } },
      1000,
    );
    write("src/cli/node/package-lock.json", { packages: {} }, 1000);
    isNewEnough = false;
  });

  it("gets another one beside it, by a lockfile of its own, which the npm scripts find", async () => {
    const bin = "node_modules/node-of-this/bin";
    npmEndsWith(0, `mkdir -p ${bin} && printf '#!/bin/sh\\n' > ${bin}/node && chmod +x ${bin}/node`);
    const { status, output } = await install();
    expect(status).toBe(0);
    expect(output).toBe("Installing a Node for the scripts, which need 22.18 or later …\n");
    expect(readFileSync(join(folder, provided, "asked"), "utf8")).toMatch(/^ci /);
    expect(existsSync(join(folder, provided, "package-lock.json"))).toBe(true);
    expect(existsSync(join(folder, "node_modules/.bin/node"))).toBe(true);
    expect(await install()).toMatchObject({ status: 0, output: "" });
  });

  it("is told where there is none to have", async () => {
    const { status, output } = await install();
    expect(status).toBe(1);
    expect(output).toContain(
      `The scripts need Node 22.18 or later, and there is none to install for ${process.platform} on ${process.arch}: see https://nodejs.org\n`,
    );
  });
});

function write(path: string, content: unknown, atSecond: number): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  utimesSync(file, atSecond, atSecond);
}

/** An npm that notes what it was asked. */
function npmEndsWith(status: number, does = ":"): void {
  standIn("npm", `echo "$@" > asked\n${does}\nexit ${status}`);
}

function standIn(name: string, lines: string): void {
  const program = join(folder, "bin", name);
  writeFileSync(program, `#!/bin/sh\n${lines}\n`);
  chmodSync(program, 0o755);
}

async function install(
  ...folders: string[]
): Promise<{ status: number | null; output: string; asked: string | undefined }> {
  const flags = isNewEnough ? [] : ["--no-experimental-strip-types"];
  const process = run(folder, [...flags, "src/cli/install.mjs", ...folders], {
    PATH: `${join(folder, "bin")}:/usr/bin:/bin`,
  });
  const status = await process.ended;
  const asked = join(folder, "asked");
  return { status, output: process.output(), asked: existsSync(asked) ? readFileSync(asked, "utf8") : undefined };
}
