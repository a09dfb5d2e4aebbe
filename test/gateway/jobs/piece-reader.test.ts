// How fast a stream comes, by what its reads bring.
import { describe, expect, it } from "vitest";
import { Pace } from "../../../src/gateway/jobs/piece-reader.ts";

type Reads = readonly [count: number, bytes: number, tookMs: number];
const first: Reads = [1, 100, 30_000];
const small = 163;
const fast: readonly Reads[] = [first, [small, 100, 0]];

describe.each<[string, readonly Reads[], isFast: boolean, isSlow: boolean]>([
  ["of which nothing has come", [], false, false],
  ["of less than 16 KB", [first, [small - 1, 100, 0]], false, false],
  ["that brought 16 KB at once, however late", fast, true, false],
  ["that brought 16 KB in 49 ms", [first, [small - 49, 100, 0], [49, 100, 1]], true, false],
  ["that brought 16 KB in 50 ms", [first, [small - 50, 100, 0], [50, 100, 1]], false, true],
  ["of large pieces", [[100, 4096, 0]], false, false],
  ["of large pieces that came slowly, then fast small ones", [[40, 4096, 100], ...fast], true, false],
  ["that is fast", [...fast, [1000, 4096, 9]], true, false],
  ["that was fast until a short wait", [...fast, [1, 4096, 10]], false, false],
  ["that is fast again after a short wait", [...fast, [1, 4096, 49], ...fast], true, false],
  ["that was fast until a pause", [...fast, [1, 4096, 50], [7, 100, 0]], false, false],
  ["that was fast until a pause, in small pieces now", [...fast, [1, 4096, 50], [8, 100, 0]], false, true],
  ["that was fast until a pause, and would be again", [...fast, [1, 4096, 50], ...fast, ...fast], false, true],
])("a stream %s", (_, reads, isFast, isSlow) => {
  it(`is ${isFast ? "fast" : isSlow ? "slow" : "neither"}`, () => {
    const pace = new Pace();
    for (const [count, bytes, tookMs] of reads) for (let n = 0; n < count; n++) pace.brought(bytes, tookMs);
    expect([pace.isFast, pace.isSlow]).toEqual([isFast, isSlow]);
  });
});
