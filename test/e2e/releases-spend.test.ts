// The sums of `GET /usage?by=` over the last release's storage, and over storage that both releases wrote in turn.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { keptReleases, unpackLastRelease } from "../releases/kept.ts";
import { Server } from "../support/serve.ts";
import { todaysBuild } from "../support/serve-bundle.ts";
import type { Build } from "../support/serve-config.ts";
import { eventually } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";

const [film, voice] = ["wan-2-6-t2v", "chatterbox-turbo"];
const patienceMs = 15_000;

let last: ReturnType<typeof unpackLastRelease>;
let today: Build;
beforeAll(async () => {
  last = unpackLastRelease();
  today = await todaysBuild();
});
afterAll(() => last.remove());

let server: Server;
let token: string;
afterEach(() => server.stop());

async function ask<T>(path: string, body?: object, key = token): Promise<T> {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(
    server.url + path,
    body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers },
  );
  expect(response.status, path).toBe(200);
  return response.json() as Promise<T>;
}

async function make(model: string, seed: number): Promise<void> {
  const { status } = await ask<{ status: string }>(`/v2/${model}/runsync`, { input: { prompt: `take ${seed}` } });
  expect(status).toBe("COMPLETED");
}

interface Books {
  readonly jobs: readonly { readonly model: string; readonly costUsd: number | null }[];
  readonly spent?: readonly { readonly model: string; readonly jobs: number; readonly usd: number }[];
}

/** Once all of them have ended: what the jobs' own rows come to, and what the sums say. */
async function spent(ended: number): Promise<{ rows: unknown; sums: unknown }> {
  const { jobs, spent } = await eventually(`${ended} ended jobs`, patienceMs, async () => {
    const books = await ask<Books>("/usage?by=model");
    return books.jobs.filter(({ costUsd }) => costUsd !== null).length === ended && books;
  });
  const rows = [film, voice].flatMap((model) => {
    const own = jobs.filter((job) => job.model === model);
    const usd = own.reduce((sum, { costUsd }) => sum + Math.round((costUsd ?? 0) * 1e6), 0) / 1e6;
    return own.length > 0 ? [{ model, jobs: own.length, usd, assumedUsd: 0 }] : [];
  });
  return { rows, sums: spent };
}

it(`the sums of a meter that ${keptReleases()[0]} and today's release wrote in turn are those of its jobs`, {
  timeout: 120_000,
}, async () => {
  server = await Server.start({ build: last });
  const asApp = testSettings.APP_SECRET;
  ({ token } = await ask<{ token: string }>("/tokens", { user: "ada", plan: "unlimited" }, asApp));
  await make(film, 1);
  await make(voice, 1);
  await spent(2);
  await server.deploy({ build: today });
  const first = await spent(2);
  expect(first.sums).toEqual(first.rows);
  await make(film, 2);
  const second = await spent(3);
  expect(second.sums).toEqual(second.rows);

  // Rolled back: it finds all jobs, and ends more of them without the sums.
  await server.deploy({ build: last });
  await spent(3);
  await make(film, 3);
  await make(voice, 2);
  await spent(5);
  await server.deploy({ build: today });
  const third = await spent(5);
  expect(third.sums).toEqual(third.rows);
  await make(voice, 3);
  const fourth = await spent(6);
  expect(fourth.sums).toEqual(fourth.rows);
  expect(server.log.filter((line) => line.includes("Uncaught"))).toEqual([]);
});
