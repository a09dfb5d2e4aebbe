// `npx ./sluice-0.1.0.tgz` in an empty folder: nothing is asked for but npm's registry, and nothing is there but the tarball.
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createSluice } from "../../src/client/index.ts";
import { type PackedApp, packApp } from "../clients/packed-app.ts";
import { eventually } from "../support/serve-eventually.ts";
import { freePort } from "../support/serve-locally.ts";

const startMs = 120_000;
const endMs = 20_000;

let app: PackedApp;
let room: string;
let folder: string;
let tarball: string;
const groups: ChildProcess[] = [];
beforeAll(() => {
  app = packApp();
  room = mkdtempSync(join(tmpdir(), "sluice-npx-"));
  folder = join(room, "an app");
  mkdirSync(folder);
  tarball = `./${basename(app.tarball)}`;
  copyFileSync(app.tarball, join(folder, tarball));
});
afterAll(() => {
  for (const { pid, exitCode, signalCode } of groups) {
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, "SIGKILL");
  }
  app.remove();
  rmSync(room, { recursive: true, force: true });
});

/** In a group of its own, as a shell starts it: Ctrl-C reaches all of it. */
function npx(...args: string[]) {
  const env = { ...process.env, npm_config_cache: join(room, "npm") };
  const child = spawn("npx", ["--yes", tarball, ...args], { cwd: folder, env, detached: true });
  groups.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const interrupt = () => process.kill(-(child.pid as number), "SIGINT");
  return { ended, interrupt, output: () => output };
}

it("makes a picture, ends with Ctrl-C, and has the picture when it starts again", { timeout: 400_000 }, async () => {
  const port = `${await freePort()}`;
  const url = `http://127.0.0.1:${port}`;
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
  };
  const serves = (one: ReturnType<typeof npx>) =>
    eventually("its first screen", startMs, async () => one.output().includes(`Sluice serves at ${url}`));
  const isGone = () =>
    eventually("a port that nobody holds", endMs, () =>
      fetch(url).then(
        () => false,
        () => true,
      ),
    );

  const first = npx("--port", port);
  await serves(first);
  expect(readdirSync(folder).sort()).toEqual([".sluice", basename(tarball)]);
  const visitor = createSluice({ url, storage });
  const { output } = await visitor.run("black-forest-labs-flux-1-schnell", { prompt: "a lighthouse" });
  expect((await fetch(output.image_url)).headers.get("Content-Type")).toMatch(/^image\//);

  const another = `${await freePort()}`;
  const beside = npx("--port", another);
  expect(await beside.ended).toBe(1);
  // Not `npx sluice`, which would be somebody else's package here.
  expect(beside.output()).toContain(`npx ${tarball} --port ${another} --state .sluice-2`);

  first.interrupt();
  await first.ended;
  await isGone();
  const second = npx("--port", port);
  await serves(second);
  expect(await createSluice({ url, storage }).gallery()).toMatchObject({ images: [{ url: output.image_url }] });
  second.interrupt();
  await second.ended;
  await isGone();
});
