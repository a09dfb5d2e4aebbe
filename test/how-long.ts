// Said at the start of a whole run: how long it takes, and what the other command is for.
import type { Reporter, Vitest } from "vitest/node";

const quick = `Every test, with small amounts: two minutes on two idle cores.
Large amounts, long waits and storms are in \`npm run test:full\`.`;
const full = "Every test, with large amounts, long waits and storms: about half an hour on two idle cores.";

export function howLong(isFull: boolean): Reporter {
  let vitest: Vitest | undefined;
  return {
    onInit(started) {
      vitest = started;
    },
    /** Who asked for single files waits for these alone. */
    async onTestRunStart(chosen) {
      const all = await vitest?.globTestSpecifications();
      if (chosen.length === all?.length) vitest?.logger.log(`${isFull ? full : quick}\n`);
    },
  };
}
