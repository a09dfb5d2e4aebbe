// Holds the house together: imports go down, the two wings never meet, and no file is a drawer for leftovers.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const src = fileURLToPath(new URL("../src/", import.meta.url));
/** Lowest first. The two wings share a floor and have no door between them. */
const floors = [
  ["settings", "micro-usd"],
  ["client", "config", "errors"],
  ["contract"],
  ["isolate"],
  ["json"],
  ["http", "durable"],
  ["models"],
  ["samples"],
  ["gateway", "platform"],
  ["door"],
  ["compose", "remote-upstream"],
  ["upstream-choice"],
  ["app"],
  ["index", "gateway-only"],
  ["site"],
];

const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
  (path) => /\.tsx?$/.test(path) && !path.endsWith(".d.ts") && statSync(join(src, path)).isFile(),
);
const sources = files.filter((path) => !path.startsWith("cli/"));
const roomOf = (path: string) => path.split("/")[0]?.replace(/\.tsx?$/, "") ?? "";
const floorOf = (room: string) => floors.findIndex((rooms) => rooms.includes(room));
const importsOf = (path: string) =>
  [...readFileSync(join(src, path), "utf8").matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map((match) =>
    relative(src, resolve(dirname(join(src, path)), match[1] as string)),
  );
/** Every import of every file, types too. */
const graph = new Map(files.map((path) => [path, importsOf(path)]));

/** The arrow is refused, and why; undefined where it is fine. */
function fault(from: string, to: string): string | undefined {
  const [room, target] = [roomOf(from), roomOf(to)];
  if (room === target) return undefined;
  if (room === "client") return `${from} imports ${to}: what browsers import knows nothing of the house`;
  if (room === "site" && to !== "client/index.ts")
    return `${from} imports ${to}: pages use the client, and nothing beside it`;
  if (floorOf(target) < 0) return `${from} imports ${to}, which lies on no floor`;
  if (floorOf(target) > floorOf(room)) return `${from} imports ${to}, a floor above`;
  if (floorOf(target) === floorOf(room) && floorOf(room) > 0) return `${from} imports ${to}, its neighbour`;
  if (target === "samples" && to !== "samples/run-sample.ts") return `${from} imports ${to}, past the room's one door`;
  return undefined;
}

/** Files that reach each other by imports, as sets of at least two: Tarjan's strongly connected components. */
function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const path: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): number => {
    const own = order.size;
    order.set(file, own);
    path.push(file);
    let lowest = own;
    for (const to of imports.get(file) ?? []) {
      if (!order.has(to)) lowest = Math.min(lowest, visit(to));
      else if (path.includes(to)) lowest = Math.min(lowest, order.get(to) ?? own);
    }
    const circle = lowest === own ? path.splice(path.indexOf(file)) : [];
    if (circle.length > 1) circles.push(circle);
    return lowest;
  };
  for (const file of imports.keys()) if (!order.has(file)) visit(file);
  return circles;
}

/** The rooms of a wing, lowest first: the upper may call the lower. */
const wingFloors: Record<string, string[][]> = {
  gateway: [
    ["operator-settings", "upstream"],
    ["identity"],
    ["quota"],
    ["media"],
    ["uploads"],
    ["jobs"],
    ["lb"],
    ["admin"],
  ],
  platform: [["queue"], ["load-balancing", "management", "workers"]],
};
const wingRoom = /^(gateway|platform)\/([^/]+)\//;

function stairs(from: string, to: string): string | undefined {
  const isMap = /^(gateway|platform)\/app(\.ts)?$/.test(to);
  if (isMap && !/^(app|gateway-only|upstream-choice)\.ts$/.test(from)) return `${from} imports ${to}, the map above it`;
  const [[, wing = "", left = ""] = [], [, , right = ""] = []] = [wingRoom.exec(from) ?? [], wingRoom.exec(to) ?? []];
  if (!left || !right || left === right) return undefined;
  const floorIn = (room: string) => (wingFloors[wing] ?? []).findIndex((rooms) => rooms.includes(room));
  if (floorIn(right) < 0) return `${from} imports ${to}, which lies on no floor of its wing`;
  return floorIn(right) >= floorIn(left) ? `${from} imports ${to}, which is not below it` : undefined;
}

describe("the house", () => {
  it("has sources, each in a room that stands on a floor", () => {
    expect(sources.length).toBeGreaterThan(0);
    expect(sources.filter((path) => floorOf(roomOf(path)) < 0)).toEqual([]);
  });

  it.each(sources)("%s imports only from below", (path) => {
    const faults = importsOf(path).map((to) => fault(path, to));
    const upstairs = importsOf(path).map((to) => stairs(path, to));
    expect([...faults, ...upstairs].filter(Boolean)).toEqual([]);
  });

  it("refuses an arrow that runs up, one between the wings, and one to nowhere", () => {
    expect(fault("contract/job.ts", "gateway/app.ts")).toMatch(/a floor above/);
    expect(fault("gateway/app.ts", "platform/app.ts")).toMatch(/its neighbour/);
    expect(fault("app.ts", "leftovers/x.ts")).toMatch(/no floor/);
    expect(fault("http/cors.ts", "cli/start.ts")).toMatch(/no floor/);
    expect(fault("platform/media.ts", "samples/sample.ts")).toMatch(/one door/);
    expect(fault("platform/media.ts", "samples/run-sample.ts")).toBeUndefined();
    expect(stairs("gateway/catalog.ts", "gateway/app.ts")).toMatch(/the map above it/);
    expect(stairs("gateway/quota/claims.ts", "gateway/jobs/submit.ts")).toMatch(/not below it/);
    expect(stairs("gateway/upstream/clock.ts", "gateway/operator-settings/plans.ts")).toMatch(/not below it/);
    expect(stairs("gateway/jobs/submit.ts", "gateway/drawer/plans.ts")).toMatch(/no floor of its wing/);
    expect(fault("client/index.ts", "errors.ts")).toMatch(/nothing of the house/);
    expect(fault("site/words.ts", "models/index.ts")).toMatch(/nothing beside it/);
    expect(fault("site/words.ts", "client/index.ts")).toBeUndefined();
    expect(stairs("platform/queue/queue.ts", "platform/workers/built-in.ts")).toMatch(/not below it/);
    expect(stairs("platform/management/account.ts", "platform/workers/protocol.ts")).toMatch(/not below it/);
    expect(stairs("platform/management/account.ts", "platform/queue/queue-calls.ts")).toBeUndefined();
    expect(stairs("gateway/app.ts", "gateway/jobs/submit.ts")).toBeUndefined();
    expect(stairs("gateway/jobs/submit.ts", "gateway/jobs/handle.ts")).toBeUndefined();
    expect(stairs("gateway/jobs/submit.ts", "gateway/quota/metering.ts")).toBeUndefined();
    expect(fault("gateway/app.ts", "models/index.ts")).toBeUndefined();
  });

  it("has no circle of imports, of types either", () => {
    expect(circlesOf(graph)).toEqual([]);
  });

  it("finds a circle however long it is, and no circle where two ways lead to one file", () => {
    const among = (imports: Record<string, string[]>) => circlesOf(new Map(Object.entries(imports)));
    expect(among({ a: ["b", "c"], b: ["d"], c: ["d"], d: [] })).toEqual([]);
    expect(among({ a: ["b"], b: ["a"] })).toEqual([["a", "b"]]);
    expect(among({ a: ["b"], b: ["c", "d"], c: ["e"], d: [], e: ["b"] })).toEqual([["b", "c", "e"]]);
  });

  it("names each file for an idea, in kebab case", () => {
    const drawers = /(^|\/)(utils?|helpers?|common|misc|shared|lib)(\.ts|\/)/;
    expect(sources.filter((path) => drawers.test(path) || !/^[a-z0-9/.-]+$/.test(path))).toEqual([]);
  });

  it("imports zod whole, since the named import bundles four times as much", () => {
    const named = sources.filter((path) =>
      /import \{[^}]*\bz\b[^}]*\} from "zod"/.test(readFileSync(join(src, path), "utf8")),
    );
    expect(named).toEqual([]);
  });
});
