// One payer alone: all its requests go through one meter, which admits them one after the other.
import { median } from "../statistics.ts";
import { serveBare } from "./bare-worker.ts";
import { load, requestText } from "./load.ts";
import { mint, serveGateway } from "./stage.ts";

export interface OnePayerRow {
  /** What the objects' writes wait for. */
  readonly objectsOn: "tmpfs" | "disk";
  readonly admitsPerSecond: number;
  readonly cpuMs: number;
  readonly p50Ms: number;
}

const connections = 32;
const path = "/v2/black-forest-labs-flux-1-dev/run";
const body = JSON.stringify({ input: { prompt: "a lighthouse in the evening", width: 1024, height: 768 } });

export async function measureOnePayer(effort: { rounds: number; loadMs: number }): Promise<OnePayerRow[]> {
  const upstream = await serveBare({ script: "upstream" });
  try {
    const rows: OnePayerRow[] = [];
    for (const objectsOn of ["tmpfs", "disk"] as const) {
      const gateway = await serveGateway(upstream, { tmpfs: objectsOn === "tmpfs" });
      try {
        const requests = [requestText("POST", path, await mint(gateway, "payer"), body)];
        const told = await loads(effort, gateway.port, requests, () => gateway.cpuMs());
        rows.push({ objectsOn, ...told });
      } finally {
        await gateway.stop();
      }
    }
    return rows;
  } finally {
    await upstream.stop();
  }
}

async function loads(
  { rounds, loadMs }: { rounds: number; loadMs: number },
  port: number,
  requests: readonly string[],
  cpuMs: () => number,
) {
  const [rates, costs, waits]: [number[], number[], number[]] = [[], [], []];
  // The first round warms up.
  for (let round = -1; round < rounds; round++) {
    const before = cpuMs();
    const { answered, perSecond, p50Ms } = await load({ port, requests, connections, until: { durationMs: loadMs } });
    if (round < 0) continue;
    rates.push(perSecond);
    costs.push((cpuMs() - before) / answered);
    waits.push(p50Ms);
  }
  return { admitsPerSecond: Math.round(median(rates)), cpuMs: median(costs), p50Ms: median(waits) };
}
