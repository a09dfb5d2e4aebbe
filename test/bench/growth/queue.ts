// What a job costs at an endpoint where many others wait.
import { Server } from "../../support/serve.ts";
import { type Growth, type GrowthEffort, type Holder, measureBySize, withHolders } from "./by-size.ts";
import { copyRow, plant } from "./plant.ts";

const endpoint = "bench";
const body = JSON.stringify({ input: { prompt: "a lighthouse" } });

export function measureQueue(effort: GrowthEffort): Promise<Growth> {
  return withHolders(effort.sizes, withWaiting, (holders) =>
    measureBySize({ what: "a job", beside: "jobs that wait" }, holders, effort, workOff),
  );
}

async function withWaiting(size: number): Promise<Holder> {
  const server = await Server.start({ settings: { ENDPOINTS: endpoint } });
  await read(await submit(server));
  await plantJobs(server, size - 1);
  const health = (await (await server.platform(`${endpoint}/health`)).json()) as { jobs: { inQueue: number } };
  if (health.jobs.inQueue !== size) throw new Error(`${health.jobs.inQueue} jobs wait, not ${size}`);
  return { size, server };
}

async function plantJobs(server: Server, copies: number): Promise<void> {
  await plant(server, "EndpointQueue", (database) => {
    const own = { key: null, id: "id || '-' || n", position: "position + n", input: "input + n" };
    copyRow(database, "jobs", copies, own);
    copyRow(database, "payloads", copies, { key: "key + n" });
    const added = ["position", "payload", "jobs", "waiting"].map((name) => `${name} = ${name} + $copies`).join(", ");
    database.prepare(`UPDATE totals SET bytes = bytes * (1 + $copies), ${added}`).run({ copies });
  });
}

/** One after the other. A job goes in for each that comes out, so that the queue keeps its length. */
async function workOff({ server }: Holder, jobs: number): Promise<void> {
  for (let n = 0; n < jobs; n++) {
    await read(await submit(server));
    const { id } = await read(await server.platform(`${endpoint}/job-take/w1?gpu=none&job_in_progress=0`));
    const done = { method: "POST", body: '{"output":{"ok":true}}' };
    await read(await server.platform(`${endpoint}/job-done/w1/${id}?gpu=none&isStream=false`, done));
    const job = await read(await server.platform(`${endpoint}/status/${id}`));
    if (job.status !== "COMPLETED") throw new Error(`the job is ${job.status}`);
  }
}

const submit = (server: Server) => server.platform(`${endpoint}/run`, { method: "POST", body });

async function read(response: Response): Promise<{ id: string; status: string }> {
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as { id: string; status: string };
}
