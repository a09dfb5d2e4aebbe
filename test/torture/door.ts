// What stands before the bundle that is tortured: the module, and how it is told what is wrong.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readWorkerConfig } from "../../src/cli/worker-config.ts";
import { todaysBuild } from "../support/serve-bundle.ts";

const module = readFileSync(join(import.meta.dirname, "door.js"), "utf8");

/** Its clock may be ahead from the start. */
export async function tortureDoor(aheadMs = 0): Promise<string> {
  const { wranglerToml } = await todaysBuild();
  const classes = readWorkerConfig(wranglerToml).durable_objects.bindings.map(({ class_name }) => class_name);
  const exported = classes.map((name) => `export const ${name} = tortured(product.${name});`);
  return [module, ...exported, `wrong.clockMs = ${aheadMs};`].join("\n");
}

export interface Wrong {
  readonly clockMs: number;
  readonly lostEvery: number;
}

/** A gateway that was killed has forgotten it, and is told nothing: nothing is wrong with the next one. */
export async function tell(gateway: string, wrong: Partial<Wrong>): Promise<void> {
  await fetch(`${gateway}/torture`, { method: "POST", body: JSON.stringify(wrong) }).catch(() => undefined);
}
