// Where the gateway is started: in a checkout, or as a package of an app, which keeps what it writes with the app.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./wrangler.ts";

export const isPackage = /[\\/]node_modules[\\/]/.test(root);

/** How its options are given. */
export const command = isPackage ? `npx ${packageName()}` : "npm start --";

/** `npx ./sluice-0.1.0.tgz` installs it where no app is: to say `npx sluice` there would run somebody else's package. */
function packageName(): string {
  const [, room] = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/.exec(root) ?? [];
  if (room === undefined) return "sluice";
  const { _npx } = JSON.parse(readFileSync(join(room, "package.json"), "utf8"));
  return _npx?.packages?.[0] ?? "sluice";
}

export const usualState = isPackage ? ".sluice" : ".state";

/** The settings of this machine. An app that is a Worker itself has a `.dev.vars` of its own, which is not ours. */
export function devVarsFile(state: string): string {
  return join(isPackage ? state : root, ".dev.vars");
}
