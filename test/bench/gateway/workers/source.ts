// The modules of this folder, as workerd is handed them.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export function workerSource(name: string): string {
  return readFileSync(join(import.meta.dirname, `${name}.js`), "utf8");
}
