// Holds the house together: imports go down, the two wings never meet, and no file is a drawer for leftovers.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const src = fileURLToPath(new URL("../src/", import.meta.url));
/** Lowest first. The two wings share a floor and have no door between them. */
const floors = [
  ["config", "errors"],
  ["contract"],
  ["wire"],
  ["models"],
  ["gateway", "platform"],
  ["door"],
  ["upstream-choice"],
  ["app"],
  ["index"],
];

const sources = readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
  (path) =>
    path.endsWith(".ts") && !path.endsWith(".d.ts") && !path.startsWith("cli/") && statSync(join(src, path)).isFile(),
);
const roomOf = (path: string) => path.split("/")[0]?.replace(/\.ts$/, "") ?? "";
const floorOf = (room: string) => floors.findIndex((rooms) => rooms.includes(room));
const importsOf = (path: string) =>
  [...readFileSync(join(src, path), "utf8").matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map((match) =>
    relative(src, resolve(dirname(join(src, path)), match[1] as string)),
  );
/** What a file asks of others when it runs: types are gone by then. */
const valuesOf = (path: string) => {
  const statements = readFileSync(join(src, path), "utf8").matchAll(
    /^(?:import|export) (type )?[^;]*?from "(\.[^"]+)"/gm,
  );
  const asked = [...statements].filter(([, type]) => type === undefined);
  return asked.map(([, , to]) => relative(src, resolve(dirname(join(src, path)), to as string)));
};

/** The arrow is refused, and why; undefined where it is fine. */
function fault(from: string, to: string): string | undefined {
  const [room, target] = [roomOf(from), roomOf(to)];
  if (room === target) return undefined;
  if (floorOf(target) < 0) return `${from} imports ${to}, which lies on no floor`;
  if (floorOf(target) > floorOf(room)) return `${from} imports ${to}, a floor above`;
  if (floorOf(target) === floorOf(room) && floorOf(room) > 0) return `${from} imports ${to}, its neighbour`;
  return undefined;
}

/** Rooms of one wing meet in files of the wing itself, its app.ts above all; next door there are only words, no calls. */
function passage(from: string, to: string): string | undefined {
  const isMap = /^(gateway|platform)\/app(\.ts)?$/.test(to);
  if (isMap && !/^(app|upstream-choice)\.ts$/.test(from)) return `${from} imports ${to}, the map above it`;
  const [left, right] = [wingRoomOf(from), wingRoomOf(to)];
  return left && right && left !== right ? `${from} imports ${to}, the room next door` : undefined;
}
/** `gateway/jobs` of `gateway/jobs/submit.ts`; files that stand in the wing itself are everyone's. */
const wingRoomOf = (path: string) => /^((?:gateway|platform)\/[^/]+)\//.exec(path)?.[1];

describe("the house", () => {
  it("has sources, each in a room that stands on a floor", () => {
    expect(sources.length).toBeGreaterThan(0);
    expect(sources.filter((path) => floorOf(roomOf(path)) < 0)).toEqual([]);
  });

  it.each(sources)("%s imports only from below", (path) => {
    const faults = importsOf(path).map((to) => fault(path, to));
    const passages = valuesOf(path).map((to) => passage(path, to));
    expect([...faults, ...passages].filter(Boolean)).toEqual([]);
  });

  it("refuses an arrow that runs up, one between the wings, and one to nowhere", () => {
    expect(fault("contract/job.ts", "gateway/app.ts")).toMatch(/a floor above/);
    expect(fault("gateway/app.ts", "platform/app.ts")).toMatch(/its neighbour/);
    expect(fault("app.ts", "leftovers/x.ts")).toMatch(/no floor/);
    expect(fault("wire/cors.ts", "cli/start.ts")).toMatch(/no floor/);
    expect(passage("gateway/catalog.ts", "gateway/app.ts")).toMatch(/the map above it/);
    expect(passage("gateway/jobs/submit.ts", "gateway/quota/plans.ts")).toMatch(/the room next door/);
    expect(passage("gateway/app.ts", "gateway/jobs/submit.ts")).toBeUndefined();
    expect(passage("gateway/jobs/submit.ts", "gateway/jobs/handle.ts")).toBeUndefined();
    expect(passage("gateway/jobs/submit.ts", "gateway/upstream.ts")).toBeUndefined();
    expect(fault("gateway/app.ts", "models/index.ts")).toBeUndefined();
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
