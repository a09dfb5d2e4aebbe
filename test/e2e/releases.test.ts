// Two releases over one storage, and a Worker of one with the objects of the other: in every deployment they change at different moments.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { serveBare } from "../bench/gateway/bare-worker.ts";
import { unpackLastRelease } from "../releases/kept.ts";
import { casesOf } from "../support/amount.ts";
import { type ServeOptions, Server } from "../support/serve.ts";
import { todaysBuild } from "../support/serve-bundle.ts";
import type { Build } from "../support/serve-config.ts";
import type { WorkerdProcess } from "../support/serve-process.ts";
import { endpoints, Life } from "./support/life.ts";

type Release = "last" | "today";
interface Deployment {
  readonly worker: Release;
  readonly objects: Release;
}
const only = (release: Release): Deployment => ({ worker: release, objects: release });

const deployments: readonly (readonly [what: string, before: Deployment, after: Deployment])[] = [
  ["an upgrade in which both are mixed", only("last"), { worker: "today", objects: "last" }],
  ["a rollback in which both are mixed", only("today"), { worker: "last", objects: "today" }],
  ["an upgrade", only("last"), only("today")],
  ["a rollback", only("today"), only("last")],
  ["new Workers before new objects", { worker: "today", objects: "last" }, only("today")],
  ["new objects before new Workers", { worker: "last", objects: "today" }, only("today")],
  ["Workers rolled back before objects", { worker: "last", objects: "today" }, only("last")],
  ["objects rolled back before Workers", { worker: "today", objects: "last" }, only("last")],
];

let last: Awaited<ReturnType<typeof unpackLastRelease>>;
let builds: Readonly<Record<Release, Build>>;
beforeAll(async () => {
  last = unpackLastRelease();
  builds = { last, today: await todaysBuild() };
});
afterAll(() => last.remove());

let stores: readonly WorkerdProcess[] = [];
let server: Server;
let life: Life;
afterEach(async () => {
  await life.close();
  await Promise.all([server, ...stores].map((one) => one.stop()));
});

describe("fault M9: the release before this one, and today's", () => {
  it.each(casesOf(deployments, 2))(
    "%s: nothing is lost, and all goes on",
    { timeout: 120_000 },
    async (_, before, after) => {
      stores = await Promise.all((["kv", "r2"] as const).map((script) => serveBare({ script })));
      const [kv, r2] = stores.map(({ port }) => `127.0.0.1:${port}`);
      const served = ({ worker, objects }: Deployment): ServeOptions => ({
        settings: { ENDPOINTS: endpoints.join(",") },
        storesAt: { kv: String(kv), r2: String(r2) },
        build: builds[worker],
        objectsOf: builds[objects],
      });
      server = await Server.start(served(before));
      life = new Life(server);
      await life.leaveBehind();
      // The process ends, and with it what its objects had in memory.
      await server.deploy(served(after));
      await life.goOn();
      expect(server.log.filter((line) => line.includes("Uncaught"))).toEqual([]);
    },
  );
});
