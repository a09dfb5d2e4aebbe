// What a payload of 20 MB in flight adds to the process's memory, on its way in and on its way out.
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { Server } from "../support/serve.ts";
import { inParallel } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";

const payloadBytes = 20 * 1000 * 1000;
const endpoint = "bench";
const operations = ["submit", "take", "done", "status"] as const;
type Operation = (typeof operations)[number];

export interface PayloadRow {
  readonly inFlight: number;
  readonly operation: Operation;
  readonly ms: number;
  /** How far the process grew above what it had before, for each payload. */
  readonly growthBytes: number;
}

/** A fresh process each time, since memory that was once taken is not given back. */
export async function measurePayloads(inFlight: number): Promise<PayloadRow[]> {
  const server = await Server.start({ settings: { ENDPOINTS: endpoint } });
  try {
    const lanes = [...Array(inFlight).keys()];
    await warmUp(server);
    const base = server.memory().now;
    const ids: string[] = [];
    const acts: Record<Operation, (lane: number) => Promise<void>> = {
      submit: async () => {
        const job = await (await server.platform(`${endpoint}/runsync?wait=1000`, post(request))).json();
        ids.push((job as { id: string }).id);
      },
      take: async (lane) => drain(await server.platform(`${endpoint}/job-take/w${lane}?gpu=none&job_in_progress=0`)),
      done: async (lane) => finish(server, lane),
      status: async (lane) => drain(await server.platform(`${endpoint}/status/${ids[lane]}`)),
    };
    const rows: PayloadRow[] = [];
    for (const operation of operations) {
      server.forgetPeak();
      const startedAt = performance.now();
      await inParallel(lanes, inFlight, acts[operation]);
      const ms = performance.now() - startedAt;
      rows.push({ inFlight, operation, ms, growthBytes: (server.memory().peak - base) / inFlight });
    }
    return rows;
  } finally {
    await server.stop();
  }
}

const filler = "x".repeat(payloadBytes);
const request = new TextEncoder().encode(`{"input":{"picture":"${filler}"}}`);
const result = new TextEncoder().encode(`{"output":{"picture":"${filler}"}}`);
const post = (body: Uint8Array): RequestInit => ({ method: "POST", body: body as BodyInit });

/** Whoever holds the lane's job brings its result. */
async function finish(server: Server, lane: number): Promise<void> {
  const requests = (await (await server.platform(`${endpoint}/requests`)).json()) as {
    requests: { id: string; workerId: string; status: string }[];
  };
  const job = requests.requests.find(({ workerId, status }) => workerId === `w${lane}` && status === "IN_PROGRESS");
  const environment = { endpoint, url: server.url, key: testSettings.PLATFORM_API_KEY, worker: `w${lane}` };
  const url = workerEnvironment(environment)["RUNPOD_WEBHOOK_POST_OUTPUT"] ?? "";
  const response = await fetch(url.replace("$RUNPOD_POD_ID", `w${lane}`).replace("$ID", job?.id ?? ""), {
    ...post(result),
    headers: { Authorization: testSettings.PLATFORM_API_KEY },
  });
  if (response.status !== 200) throw new Error(`job-done answered ${response.status}: ${await response.text()}`);
}

/** Reads without keeping. */
async function drain(response: Response): Promise<void> {
  if (response.status !== 200) throw new Error(`answered ${response.status}`);
  let size = 0;
  for await (const piece of response.body ?? []) size += piece.byteLength;
  if (size < payloadBytes) throw new Error(`only ${size} bytes came`);
}

/** The object awake, the code warm: neither is the payload's. */
async function warmUp(server: Server): Promise<void> {
  for (let n = 0; n < 200; n++) await (await server.platform(`${endpoint}/run`, post(small))).json();
  await (await server.platform(`${endpoint}/purge-queue`, { method: "POST" })).json();
}
const small = new TextEncoder().encode('{"input":{}}');
