// What a start costs: CPU from the process's first moment to its first answer, beside a Worker of five lines.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundle } from "../../support/serve-bundle.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { median } from "../statistics.ts";
import type { Stage } from "./stage.ts";

export interface StartRow {
  readonly passthroughCpuMs: number;
  readonly gatewayCpuMs: number;
  readonly bundleKB: number;
  readonly bundleGzipKB: number;
}

export async function measureStart({ servers }: Stage, rounds: number): Promise<StartRow> {
  const [bare, own]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    bare.push(await startCpuMs(servers.passthrough));
    own.push(await startCpuMs(servers.gateway));
  }
  const folder = await bundle();
  const files = readdirSync(folder).filter((file) => /\.(js|bin|wasm)$/.test(file));
  const contents = files.map((file) => readFileSync(join(folder, file)));
  const kilobytes = (sizes: readonly number[]) => sizes.reduce((sum, size) => sum + size, 0) / 1024;
  return {
    passthroughCpuMs: median(bare),
    gatewayCpuMs: median(own),
    bundleKB: kilobytes(contents.map(({ byteLength }) => byteLength)),
    bundleGzipKB: kilobytes(contents.map((content) => gzipSync(content).byteLength)),
  };
}

async function startCpuMs(server: WorkerdProcess): Promise<number> {
  await server.kill9();
  await server.restart();
  await (await fetch(`${server.url}/healthz`)).arrayBuffer();
  return server.cpuMs();
}
