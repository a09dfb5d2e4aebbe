// The order of the files: those that take long begin first, so that nothing else is left to wait for at the end.
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What waits for processes, alarms and deadlines. A clone remembers no durations, and size says nothing of these. */
const longest = [
  "full/npm-start",
  "full/torture-clients",
  "full/hostile-clients",
  "e2e/doctor",
  "e2e/deploy",
  "clients/hostile-pages",
  "clients/playground",
  "clients/pages",
  "clients/client-in-chromium",
  "client-in-workers",
  "e2e/start",
  "clients/client",
  "e2e/start-state",
  "e2e/quota-crash",
  "e2e/gateway-only",
  "clients/code-for-a-call",
  "e2e/webhook-redirect",
  "e2e/releases",
  "e2e/outlived",
  "e2e/payloads",
  "e2e/leaving-clients",
  "e2e/edited-source",
  "e2e/exact-through-kills",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((left, right) => rankOf(left) - rankOf(right));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return rank < 0 ? longest.length : rank;
}
