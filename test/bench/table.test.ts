// The figures of the README and of docs/ pass through here: several runs become one table, and no round is lost.
import { describe, expect, it } from "vitest";
import { briefRelays } from "./gateway/relays-brief.ts";
import { isMarked, putBetweenMarks } from "./marks.ts";
import { paired } from "./statistics.ts";
import { markdown, mergeRuns, tableOf } from "./table.ts";

const headings = { what: "What", ms: "ms", ratio: "ratio", p99Ms: "p99" };
const run = (ms: number, rounds: readonly number[], p99Ms: number | undefined) =>
  tableOf(headings, [{ what: "a run", ms, ratio: paired(rounds, [2, 2, 2, 2]), p99Ms }]);

describe("runs of a bench", () => {
  it("become one: the mean of what was measured, every round of what was compared", () => {
    const merged = mergeRuns([run(1000, [1, 2, 3, 4], undefined), run(2000, [5, 6, 7, 8], undefined)]);
    expect(merged.rows).toEqual([
      {
        what: "a run",
        ms: 1500,
        ratio: {
          runs: [
            [0.5, 1, 1.5, 2],
            [2.5, 3, 3.5, 4],
          ],
        },
        p99Ms: undefined,
      },
    ]);
  });

  it("are written with the median of each and the quartiles of all, and a dash for what was not said", () => {
    const merged = mergeRuns([run(1234.5, [1, 2, 3, 4], undefined), run(1234.5, [5, 6, 7, 8], undefined)]);
    expect(markdown(merged).split("\n")).toEqual([
      "| What | ms | ratio | p99 |",
      "|---|---|---|---|",
      "| a run | 1,230 | 1.50×, 3.50× (1.50 to 3.50) | – |",
    ]);
  });

  it("say whether a goal is reached, by the median of all rounds", () => {
    const held = (rounds: readonly number[]) =>
      tableOf({ cpu: "CPU" }, [{ cpu: { ...paired(rounds, [1, 1, 1]), atMost: 1.6 } }]);
    const textOf = (...runs: (readonly number[])[]) => markdown(mergeRuns(runs.map(held))).split("\n")[2];
    expect(textOf([1.5, 1.6, 9])).toBe("| 1.60× (1.50 to 9.00); goal 1.6×, reached |");
    expect(textOf([1.5, 1.6, 9], [1.7, 1.7, 1.7])).toBe("| 1.60×, 1.70× (1.60 to 1.70); goal 1.6×, not reached |");
  });

  it("say a wait at p99 where each of them could", () => {
    expect(mergeRuns([run(1, [1], 0.25), run(1, [1], 0.75)]).rows[0]?.["p99Ms"]).toBe(0.5);
    expect(mergeRuns([run(1, [1], undefined), run(1, [1], 0.25)]).rows[0]?.["p99Ms"]).toBeUndefined();
  });
});

describe("a document", () => {
  const text = "before\n<!-- bench relays -->\n\nold\n\n<!-- end of bench relays -->\nafter\n";

  it("has a bench's table between its marks, each time anew", () => {
    const once = putBetweenMarks(text, "relays", () => "| new |");
    expect(once).toBe("before\n<!-- bench relays -->\n\n| new |\n\n<!-- end of bench relays -->\nafter\n");
    expect(putBetweenMarks(once, "relays", () => "| new |")).toBe(once);
  });

  it("stays as it is where it has no place for it", () => {
    expect(putBetweenMarks(text, "relays in brief", () => "new")).toBe(text);
    expect([isMarked(text, "relays"), isMarked(text, "relays in brief")]).toEqual([true, false]);
  });

  it("shows each question once in brief, beside the nearest thing that does as much", () => {
    const asked = (row: string, beside: string) => ({ row, beside, perSecond: 7, cpuMs: 1, cpu: paired([2], [1]) });
    const columns = [{ key: "row", heading: "What is asked" }];
    const rows = [
      asked("a run", "bare passthrough"),
      asked("a run", "least gateway"),
      asked("a hit", "bare passthrough"),
    ];
    const brief = briefRelays({ columns, rows }, ["a run", "a hit"]);
    expect(markdown(brief).split("\n").slice(2)).toEqual([
      "| a run | 7 | 1 | least gateway | 2.00× (2.00 to 2.00) |",
      "| a hit | 7 | 1 | bare passthrough | 2.00× (2.00 to 2.00) |",
    ]);
  });
});
