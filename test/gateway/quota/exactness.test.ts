// However many come at once, as many are admitted as the rule says, no more and no fewer.
import { afterEach, describe, expect, it } from "vitest";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import { amount } from "../../support/amount.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, meterOf, request } from "./admissions.ts";

const limit = 50;
const rounds = amount(10);
const reserveMicroUsd = 20_000;
const rules: [Rule["unit"], Rule, string][] = [
  ["requests", { unit: "requests", limit, per: "day" }, "RATE_LIMITED"],
  ["jobs", { unit: "jobs", limit }, "TOO_MANY_JOBS"],
  ["usd", { unit: "usd", limit: (limit * reserveMicroUsd) / 1e6, per: "day" }, "QUOTA_EXCEEDED"],
];

afterEach(emptyStorage);

describe("200 parallel admissions against a limit of 50", () => {
  it.each(rules)(
    `admit exactly 50 by %s, in each of ${rounds} rounds`,
    { timeout: 60_000 },
    async (_unit, rule, code) => {
      for (let round = 0; round < rounds; round++) {
        const meter = meterOf(`user:${round}`);
        const asked = { plan: "tested", plans: plansText({ tested: [rule] }), reserveMicroUsd };
        const answers = await Promise.all(Array.from({ length: 200 }, () => meter.admit(request(asked))));
        expect(answers.filter(({ admitted }) => admitted)).toHaveLength(limit);
        expect(answers.filter((answer) => codeOf(answer) === code)).toHaveLength(200 - limit);
      }
    },
  );
});
