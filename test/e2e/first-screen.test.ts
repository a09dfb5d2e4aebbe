// What `npm start` prints is pasted into a shell as it stands, wherever the settings lie.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { firstScreen } from "../../src/cli/first-screen.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-"));
afterAll(() => rmSync(folder, { recursive: true }));

const shown = { hasPage: true, isMisconfigured: false, hasAppSecret: true, devVars: ".dev.vars" };

it.each([".dev.vars", "my state/.dev.vars", "ada's $(state)/.dev.vars", "a&b/.dev.vars", 'a "b"/.dev.vars'])(
  "the operator's secret is read of %s",
  (path) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), "LOCAL=true\nAPP_SECRET=a-secret\n");
    const screen = firstScreen("127.0.0.1", 8787, { ...shown, devVars: path });
    const [, header] = /(-H "Authorization: Bearer \$\(sed.*") \\$/m.exec(screen) ?? [];
    const pasted = spawnSync("bash", ["-c", `printf '%s' ${header}`], { cwd: folder, encoding: "utf8" });
    expect(pasted).toMatchObject({ stdout: "-HAuthorization: Bearer a-secret", stderr: "" });
  },
);

it("invites nobody where the settings are wrong", () => {
  const screen = firstScreen("127.0.0.1", 8787, { ...shown, isMisconfigured: true });
  expect(screen.trimStart()).toMatch(/^The settings that are named above are wrong\./);
  expect(screen).not.toMatch(/browser|curl/);
});

it("shows no command for tokens where there is no APP_SECRET", () => {
  expect(firstScreen("127.0.0.1", 8787, shown)).toContain("/tokens");
  expect(firstScreen("127.0.0.1", 8787, { ...shown, hasAppSecret: false })).not.toMatch(/tokens|APP_SECRET/);
});
