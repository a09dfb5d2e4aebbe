// Names the tests that this machine cannot run, and says why: none is left out in silence.
import type { Reporter } from "vitest/node";

export const leftOut: Reporter = {
  onTestRunEnd(modules) {
    for (const test of modules.flatMap((module) => [...module.children.allTests("skipped")])) {
      const result = test.result();
      // One that a filter of names left out has no note.
      if (result.state === "skipped" && result.note) console.warn(`Left out: ${test.fullName} (${result.note})`);
    }
  },
};
