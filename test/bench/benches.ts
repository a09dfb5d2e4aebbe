// What there is to measure: each with its table. Small shows that it runs, for machines that measure nothing.
import { serveBare } from "./gateway/bare-worker.ts";
import { measureFilms } from "./gateway/films.ts";
import { measureHeld } from "./gateway/held.ts";
import { isQuiet, type Jitter } from "./gateway/jitter.ts";
import { measureOnePayer } from "./gateway/one-payer.ts";
import { fullEffort, measurePayers, smallEffort } from "./gateway/payers.ts";
import { measureRelays } from "./gateway/relays.ts";
import { briefRelays } from "./gateway/relays-brief.ts";
import { Stage } from "./gateway/stage.ts";
import { measureStart } from "./gateway/start.ts";
import { measureTransfers } from "./gateway/transfers.ts";
import { measureUploads } from "./gateway/uploads.ts";
import { measureAdmits } from "./growth/admits.ts";
import { growthTable } from "./growth/by-size.ts";
import { measureImages } from "./growth/images.ts";
import type { Plot } from "./growth/plot.ts";
import { measureQueue } from "./growth/queue.ts";
import { measureManagement } from "./management.ts";
import { measurePayloads } from "./payloads.ts";
import { measurePeers } from "./peers/peers.ts";
import { measureRates } from "./rates.ts";
import type { Brief } from "./report.ts";
import { type Table, tableOf } from "./table.ts";

export interface Circumstances {
  readonly small: boolean;
  readonly jitter: Jitter;
}

export interface Bench {
  readonly title: string;
  readonly measure: (circumstances: Circumstances) => Promise<Table>;
  /** What of it the README shows. */
  readonly brief?: (table: Table, plots: readonly Plot[]) => Brief;
}

export const benches: Readonly<Record<string, Bench>> = {
  relays: {
    title: "Small exchanges, 32 at once, for 64 users",
    measure: async ({ small, jitter }) => {
      const often = small
        ? { warmUp: 100, rounds: 1, loadMs: 120, aloneMs: 50 }
        : { warmUp: 20_000, rounds: 9, loadMs: 600, aloneMs: 250 };
      const effort = { ...often, quiet: isQuiet(jitter) };
      const rows = await onStage(small ? 4 : 64, (stage) => measureRelays(stage, effort));
      const headings = {
        row: "What is asked",
        beside: "beside",
        otherPerSecond: "its requests/s",
        perSecond: "Sluice's",
        rate: "ratio",
        otherCpuMs: "its CPU a request, ms",
        cpuMs: "Sluice's",
        cpu: "ratio",
        addedP50Ms: "added wait, ms",
        addedP99Ms: "at p99",
      };
      return tableOf(headings, rows);
    },
    brief: (table) => ({ table: briefRelays(table) }),
  },
  payers: {
    title: "A run with quota, by how long its payer's objects have slept, beside the floor Worker",
    measure: async ({ small }) => {
      const headings = {
        row: "What is asked",
        floorCpuMs: "CPU of the floor Worker, ms",
        cpuMs: "CPU of Sluice, ms",
        cpu: "ratio, and the goal",
      };
      return tableOf(headings, await measurePayers(small ? smallEffort : fullEffort));
    },
  },
  transfers: {
    title: "Large bodies, beside a bare passthrough",
    measure: async ({ small }) => {
      const rows = await onStage(1, (stage) => measureTransfers(stage, small ? 1 : 7));
      const headings = {
        row: "What is sent",
        passthroughMs: "its time, ms",
        gatewayMs: "Sluice's",
        time: "ratio",
        cpu: "ratio of the CPU",
        addedMB: "added memory, MB",
      };
      return tableOf(headings, rows);
    },
  },
  films: {
    title: "A film of 20 MB down: how far a process that has served pictures grows",
    measure: async ({ small }) => {
      const headings = {
        row: "What is fetched",
        passthroughGrewMB: "bare passthrough, MB",
        gatewayGrewMB: "Sluice, MB",
        passthroughMs: "its time, ms",
        gatewayMs: "Sluice's",
      };
      return tableOf(headings, await measureFilms(small ? 1 : 3));
    },
  },
  uploads: {
    title: "A file of 20 MB into the bucket and out of it, beside a bare Worker that streams it there",
    measure: async ({ small }) => {
      const headings = {
        row: "What is sent",
        bareMs: "bare Worker, ms",
        gatewayMs: "Sluice's",
        time: "ratio",
        bareGrewMB: "bare Worker grew, MB",
        gatewayGrewMB: "Sluice, MB",
      };
      return tableOf(headings, await measureUploads(small ? 2 : 7));
    },
  },
  held: {
    title: "What stands still: how far the peak of the process lies above its idle memory",
    measure: async ({ small }) => {
      const headings = { what: "What", addedMB: "added, MB", goalMB: "goal, MB", reached: "" };
      return tableOf(headings, await measureHeld(small));
    },
  },
  start: {
    title: "From the start of the process to its first answer, and the size of the bundle",
    measure: async ({ small }) => {
      const row = await onStage(1, (stage) => measureStart(stage, small ? 1 : 7));
      const headings = {
        passthroughCpuMs: "CPU of the bare passthrough, ms",
        gatewayCpuMs: "CPU of Sluice, ms",
        bundleKB: "bundle, KB",
        bundleGzipKB: "gzip, KB",
      };
      return tableOf(headings, [row]);
    },
  },
  peers: {
    title: "Other gateways, each relaying the same chat completion: 32 at once, and a stream of 5,000 events",
    measure: async ({ small }) => {
      const effort = small ? { rounds: 1, loadMs: 150, streamMs: 50 } : { rounds: 7, loadMs: 700, streamMs: 400 };
      const headings = {
        who: "Who relays",
        runsOn: "runs on",
        perSecond: "requests/s",
        cpuMs: "CPU a request, ms",
        cpu: "ratio to the first",
        streamCpuMs: "CPU a stream, ms",
        streamCpu: "ratio to the first",
      };
      return tableOf(headings, await onStage(64, (stage) => measurePeers(stage, effort)));
    },
  },
  growth: {
    title: "What a call costs, by how much there is already",
    measure: async ({ small }) => {
      const effort = (most: number, calls: number) => ({
        sizes: [100, 1000, 10_000, 100_000, 1_000_000].filter((size) => size <= (small ? 1000 : most)),
        ...(small ? { rounds: 1, calls: 20 } : { rounds: 7, calls }),
      });
      const upstream = await serveBare({ script: "upstream" });
      try {
        const admits = await measureAdmits(upstream, effort(1_000_000, 500));
        const images = await measureImages(upstream, effort(100_000, 200));
        return growthTable([await measureQueue(effort(100_000, 100)), admits, ...images]);
      } finally {
        await upstream.stop();
      }
    },
    brief: (_, plots) => ({ plots: plots.filter(({ what }) => what === "an admission") }),
  },
  "one-payer": {
    title: "One payer alone: runs with quota through one meter, 32 at once",
    measure: async ({ small }) => {
      const headings = {
        objectsOn: "Objects on",
        admitsPerSecond: "admits/s",
        cpuMs: "CPU a request, ms",
        p50Ms: "p50, ms",
      };
      return tableOf(headings, await measureOnePayer(small ? { rounds: 1, loadMs: 200 } : { rounds: 7, loadMs: 1000 }));
    },
  },
  rates: {
    title: "One endpoint at the contract's own rates, runs and statuses at once",
    measure: async ({ small }) => {
      const headings = {
        operation: "Operation",
        asked: "asked",
        errors: "errors",
        seconds: "in seconds",
        p50Ms: "p50, ms",
        p99Ms: "p99, ms",
      };
      return tableOf(headings, await measureRates(small ? 0.1 : 1));
    },
  },
  payloads: {
    title: "20 MB payloads at the platform: growth of the process above its start, for each in flight",
    measure: async ({ small }) => {
      const rows = [...(await measurePayloads(1)), ...(small ? [] : await measurePayloads(4))];
      const headings = { inFlight: "In flight", operation: "operation", ms: "ms", growthMB: "growth, MB" };
      return tableOf(
        headings,
        rows.map(({ growthBytes, ...others }) => ({ ...others, growthMB: growthBytes / 1e6 })),
      );
    },
  },
  management: {
    title: "The management interface, by how much an account holds",
    measure: async ({ small }) => {
      const few = { templates: 100, pods: 100 };
      const sizes = [few, small ? { templates: 1000, pods: 1000 } : { templates: 100_000, pods: 10_000 }];
      const headings = {
        question: "Question",
        templates: "templates",
        pods: "Pods",
        ms: "ms",
        ratio: "ratio to few",
      };
      return tableOf(headings, await measureManagement(sizes, small ? 1 : 7, small ? 5 : 100));
    },
  },
};

async function onStage<T>(payers: number, act: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await Stage.set(payers);
  try {
    return await act(stage);
  } finally {
    await stage.strike();
  }
}
