// What must be true of each scenario, in whichever world it was run.
import { expect } from "vitest";
import { amount } from "../support/amount.ts";
import * as scenarios from "./client-scenarios.ts";

type Scenario = (world: scenarios.World, given: never) => Promise<unknown>;

export interface Claim {
  readonly name: string;
  readonly scenario: Scenario;
  readonly given?: unknown;
  readonly holds: (result: never) => void;
}

const abandoned = (at: string, ...jobs: string[]): Claim => ({
  name: `abandons a job while it is ${at}: the job is cancelled, its place is free`,
  scenario: scenarios.abandons,
  given: at,
  holds: (result) => expect(result).toEqual({ thrown: "AbortError", next: "COMPLETED", jobs }),
});

export const claims: readonly Claim[] = [
  {
    name: "makes a picture, a film, a voice and a text, each at its price",
    scenario: scenarios.makesEveryKind,
    holds: (result) =>
      expect(result).toEqual({
        made: ["image", "video", "audio"],
        text: expect.stringContaining("a lighthouse"),
        areCharged: true,
      }),
  },
  {
    name: "uploads a file to have it edited, and makes a film of that at the price that it estimated",
    scenario: scenarios.filmsAnUpload,
    holds: ({ size, told, film, cost, estimated }: Awaited<ReturnType<typeof scenarios.filmsAnUpload>>) => {
      const states = told.filter((one) => typeof one === "string");
      expect(states.slice(0, 2)).toEqual(["uploading", "submitting"]);
      expect(states.at(-1)).toBe("COMPLETED");
      const sent = told.filter((one) => typeof one !== "string") as [string, number][];
      expect(sent.at(-1)).toEqual(["image", size]);
      expect(sent.map(([, bytes]) => bytes)).toEqual(sent.map(([, bytes]) => bytes).sort((a, b) => a - b));
      expect(film).toMatch(/^http/);
      expect(cost).toBe(estimated);
    },
  },
  ...[true, false].map((doesSay) => ({
    name: `renews a token that ${doesSay ? "ends" : "the gateway refuses"} while jobs go on, once for ten callers`,
    scenario: scenarios.renewsItsToken,
    given: doesSay,
    holds: (result: object) => expect(result).toEqual({ asked: 2, ended: ["COMPLETED", "COMPLETED"] }),
  })),
  abandoned("uploading", "COMPLETED"),
  abandoned("submitting", "COMPLETED", "CANCELLED"),
  abandoned("IN_QUEUE", "COMPLETED", "CANCELLED"),
  abandoned("IN_PROGRESS", "COMPLETED", "CANCELLED"),
  abandoned("streaming", "COMPLETED", "CANCELLED"),
  {
    name: "asks again where an answer is lost, and submits one job",
    scenario: scenarios.losesAnswers,
    holds: (result) => expect(result).toEqual({ status: "COMPLETED", jobs: ["COMPLETED"] }),
  },
  {
    name: "takes up events that were cut: no chunk comes twice, a lost one is told, the output is whole",
    scenario: scenarios.hearsThroughCuts,
    holds: ({ heard, chunks }: Awaited<ReturnType<typeof scenarios.hearsThroughCuts>>) => {
      const numbers = heard.filter((one) => one !== "gap") as number[];
      expect(heard.slice(0, 3)).toEqual([1, 2, "gap"]);
      expect(heard.length - numbers.length).toBe(2);
      expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
      expect(numbers.length).toBeLessThan(chunks.length);
      expect(chunks).toEqual(chunks.map((_, index) => index + 1));
    },
  },
  {
    name: "hears of a worker's progress",
    scenario: scenarios.hearsOfProgress,
    holds: ([first, second, ...more]: number[]) => {
      expect(second).toBeGreaterThan(first as number);
      expect(more).toEqual([]);
    },
  },
];

/** More than a browser has connections, and than the workers take at once. It takes all that the machine has. */
export function crowd(): Omit<Claim, "name"> {
  const count = amount(50, 15);
  return {
    scenario: scenarios.runsManyAtOnce,
    given: count,
    holds: (result) => expect(result).toBe(count),
  };
}
