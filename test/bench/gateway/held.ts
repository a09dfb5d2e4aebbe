// What clients that stand still, and answers that nobody asked for, make the process hold: far above its idle memory, or not.
import { createServer, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Server } from "../../support/serve.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { listenLocally } from "../../support/serve-locally.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { serveBare } from "./bare-worker.ts";
import { requestText } from "./load.ts";
import { mint, openEndpoint, serveGateway } from "./stage.ts";

export interface HeldRow {
  readonly what: string;
  readonly addedMB: number;
  readonly goalMB: number;
  readonly reached: string;
}

interface Scene {
  readonly gateway: Server;
  readonly kv: WorkerdProcess;
  readonly token: string;
  readonly small: boolean;
  readonly sockets: Socket[];
}
type Act = (scene: Scene) => Promise<void>;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const path = `/v2/${openEndpoint}`;
/** Longer than it takes until all that comes at once has come. */
const settleMs = 4_000;
/** By then the heap has the size that any traffic gives it: what grows after them is held. */
const warmRuns = 3000;
/** Then the meter asks about jobs that nobody follows. */
const ttlMs = 10_000;

const stalledUploads: Act = async ({ gateway, token, small, sockets }) => {
  const sent = "x".repeat(100_000);
  for (let n = 0; n < (small ? 10 : 300); n++) {
    const body = `{"input":{"image":"${sent}`;
    sockets.push(
      open(
        gateway,
        requestText("POST", `${path}/run`, token, body).replace(/Content-Length: \d+/, "Content-Length: 200000"),
      ),
    );
  }
  await pause(settleMs);
};

const unreadStreams: Act = async ({ gateway, token, small, sockets }) => {
  const body = '{"stream":true,"messages":[]}';
  for (let n = 0; n < (small ? 2 : 30); n++) {
    sockets.push(open(gateway, requestText("POST", `${path}/openai/v1/chat/completions`, token, body)));
  }
  await pause(2 * settleMs);
};

const largeAnswers: Act = async ({ gateway, kv, token, small }) => {
  const body = JSON.stringify({ input: {}, policy: { ttl: ttlMs } });
  const headers = { Authorization: `Bearer ${token}` };
  const jobs = small ? 2 : 12;
  for (let n = 0; n < jobs; n++) await fetch(`${gateway.url}${path}/run`, { method: "POST", headers, body });
  await pause(ttlMs);
  await eventually("what the alarm keeps", 2 * ttlMs, async () => (await kept(kv)) === jobs);
};

async function kept(kv: WorkerdProcess): Promise<number> {
  const list = await fetch(`${kv.url}/?prefix=result/`);
  return ((await list.json()) as { keys: unknown[] }).keys.length;
}

/** Sends, and never reads. */
function open({ port }: Server, text: string): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(text);
  return socket.pause();
}

const acts: readonly (readonly [what: string, goalMB: number, acts: readonly Act[]])[] = [
  ["300 uploads of 200 KB that stop after 100", 64, [stalledUploads]],
  ["30 streams of events that nobody reads, 1 MB each piece", 64, [unreadStreams]],
  ["12 answers of 4 MB that the meter's alarm asks for", 64, [largeAnswers]],
  ["all three at once", 110, [stalledUploads, unreadStreams, largeAnswers]],
];

export async function measureHeld(small: boolean): Promise<HeldRow[]> {
  const upstream = createServer((request, response) => {
    request.resume().on("end", () => answer(request.url ?? "", response));
  });
  const url = await listenLocally(upstream);
  const rows: HeldRow[] = [];
  try {
    for (const [what, goalMB, together] of acts) {
      const addedMB = await measure(url, together, small);
      rows.push({ what, addedMB, goalMB, reached: addedMB <= goalMB ? "reached" : "not reached" });
    }
  } finally {
    upstream.closeAllConnections();
    upstream.close();
  }
  return rows;
}

/**
 * A fresh process each time, its heap warm, since memory that was once taken is not given back. KV is a process of its own:
 * at the edge what it keeps is none of the Worker's memory.
 */
async function measure(url: string, together: readonly Act[], small: boolean): Promise<number> {
  const kv = await serveBare({ script: "kv" });
  const gateway = await serveGateway({ url }, { storesAt: { kv: `127.0.0.1:${kv.port}` } });
  const sockets: Socket[] = [];
  try {
    const token = await mint(gateway, "payer-0");
    const headers = { Authorization: `Bearer ${token}` };
    for (let n = 0; n < (small ? 50 : warmRuns); n++) {
      await (await fetch(`${gateway.url}${path}/run`, { method: "POST", headers, body: '{"input":{}}' })).text();
    }
    const base = gateway.memory().now;
    gateway.forgetPeak();
    await Promise.all(together.map((act) => act({ gateway, kv, token, small, sockets })));
    return (gateway.memory().peak - base) / 1e6;
  } finally {
    for (const socket of sockets) socket.destroy();
    await Promise.all([gateway.stop(), kv.stop()]);
  }
}

let jobs = 0;
const picture = "A".repeat(3_900_000);
const piece = `data: {"choices":[{"delta":{"content":"${"word ".repeat(200_000)}"}}]}\n\n`;

function answer(path: string, response: ServerResponse): void {
  response.on("error", () => {});
  if (path.includes("/openai/")) {
    response.setHeader("Content-Type", "text/event-stream");
    const more = (): unknown =>
      !response.destroyed && (response.write(piece) ? setImmediate(more) : response.once("drain", more));
    more();
    return;
  }
  response.setHeader("Content-Type", "application/json");
  if (path.endsWith("/run")) {
    response.end(JSON.stringify({ id: `job-${++jobs}`, status: "IN_QUEUE" }));
    return;
  }
  const output = { picture, cost: 0.001 };
  response.end(JSON.stringify({ id: path.split("/").at(-1), status: "COMPLETED", output }));
}
