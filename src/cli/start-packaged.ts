// How a package starts, on whatever Node the machine has: an older one cannot even load the rest.
import { sayTooOld } from "./node-needed.ts";

const tooOld = sayTooOld(process.versions.node);
if (tooOld) {
  console.error(tooOld);
  process.exit(1);
}
await import("./start.ts");
