// The management interface measured: look-ups and filtered lists of an account that holds little, and of one that holds much.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Server } from "../support/serve.ts";
import { testSettings } from "../support/settings.ts";
import { median, timed } from "./statistics.ts";

export interface AccountSize {
  readonly templates: number;
  readonly pods: number;
}

export interface ManagementRow {
  readonly question: string;
  readonly templates: number;
  readonly pods: number;
  readonly ms: number;
  /** Of the time, against the smallest account, round by round. */
  readonly ratio: number;
}

const questions = {
  "find a template": "/templates/template50?includeEndpointBoundTemplates=true",
  "list the templates that no endpoint uses": "/templates",
  "find a Pod": "/pods/pod50",
  "list Pods by name": "/pods?name=named50",
  "list Pods by template and state": "/pods?templateId=template50&desiredStatus=RUNNING",
  "list Pods by GPU type and data center": "/pods?gpuTypeId=NVIDIA%20B200&dataCenterId=EU-RO-1",
};

export async function measureManagement(sizes: readonly AccountSize[], rounds: number, calls: number) {
  const servers: { size: AccountSize; server: Server }[] = [];
  try {
    for (const size of sizes) servers.push({ size, server: await planted(size) });
    const rows: ManagementRow[] = [];
    for (const [question, path] of Object.entries(questions)) {
      const times = servers.map((): number[] => []);
      for (let round = -1; round < rounds; round++) {
        for (const [index, { server }] of servers.entries()) {
          const ms = (await timed(() => ask(server, path, calls))) / calls;
          if (round >= 0) times[index]?.push(ms);
        }
      }
      const smallest = times[0] ?? [];
      for (const [index, { size }] of servers.entries()) {
        const own = times[index] ?? [];
        const ratio = median(own.map((ms, round) => ms / (smallest[round] ?? Number.NaN)));
        rows.push({ question, ...size, ms: median(own), ratio });
      }
    }
    return rows;
  } finally {
    await Promise.all(servers.map(({ server }) => server.stop()));
  }
}

async function ask(server: Server, path: string, calls: number): Promise<void> {
  for (let n = 0; n < calls; n++) {
    const headers = { Authorization: `Bearer ${testSettings.PLATFORM_API_KEY}` };
    const response = await fetch(`${server.url}/platform/v1${path}`, { headers });
    const text = await response.text();
    if (response.status !== 200 || text === "[]") throw new Error(`${path} answered ${response.status}: ${text}`);
  }
}

/** An account with a few records of each kind that the questions find, and as many others. */
async function planted({ templates, pods }: AccountSize): Promise<Server> {
  const server = await Server.start();
  const headers = { Authorization: `Bearer ${testSettings.PLATFORM_API_KEY}` };
  for (let n = 0; n < 5; n++) {
    await post(server, headers, "/templates", { name: `own ${n}`, imageName: "example.com/own:1" });
    await post(server, headers, "/pods", { imageName: "example.com/own:1", gpuTypeIds: ["NVIDIA B200"] });
  }
  await server.kill9();
  const folder = join(server.disk, "Account");
  const [file] = readdirSync(folder).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name));
  if (!file) throw new Error("the account has no file");
  const database = new DatabaseSync(join(folder, file));
  const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)";
  database
    .prepare(`${numbers} INSERT INTO templates (json, bound) ${copyOf("templates", "'template' || i", "{}")}, 1 FROM n`)
    .run(templates);
  const changed = "json_object('templateId', 'template' || i, 'gpuTypeId', 'NVIDIA L4')";
  database.prepare(`${numbers} INSERT INTO pods (json) ${copyOf("pods", "'pod' || i", changed)} FROM n`).run(pods);
  database.close();
  await server.restart();
  return server;
}

/** The first record's JSON, with an id and a name of its own. */
function copyOf(table: string, id: string, changed: string): string {
  const own = `json_object('id', ${id}, 'name', 'named' || i)`;
  const patch = changed === "{}" ? own : `json_patch(${own}, ${changed})`;
  return `SELECT json_patch((SELECT json FROM ${table} WHERE seq = 1), ${patch})`;
}

async function post(server: Server, headers: HeadersInit, path: string, body: object): Promise<void> {
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${server.url}/platform/v1${path}`, init);
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
}
