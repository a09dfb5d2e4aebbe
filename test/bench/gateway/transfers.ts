// Large bodies through the gateway, beside the passthrough: 20 MB up, and a stream of events down.
import { request } from "node:http";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { median, paired, type Ratio, timed } from "../statistics.ts";
import { openEndpoint, type Stage } from "./stage.ts";

export interface TransferRow {
  readonly row: string;
  readonly passthroughMs: number;
  readonly gatewayMs: number;
  /** Round by round, how many times as long. */
  readonly time: Ratio;
  readonly cpu: Ratio;
  /** How far the gateway's process grew, beyond how far the passthrough's did, from a fresh start. */
  readonly addedMB: number;
}

interface Transfer {
  readonly row: string;
  readonly path: string;
  readonly body: Buffer;
  readonly atOnce: number;
}

const uploadBytes = 20 * 1024 * 1024 - 1024;
const base64 = () => Buffer.from(`{"input":{"image":"${"QUJD".repeat(uploadBytes / 4 - 16)}"}}`);
const values = () => Buffer.from(`{"input":{"values":[${"0.125,".repeat(uploadBytes / 6 - 16)}1]}}`);
const chat = () => Buffer.from('{"stream":true,"messages":[{"role":"user","content":"hello"}]}');
const upload = `/v2/${openEndpoint}/runsync`;

export async function measureTransfers(stage: Stage, rounds: number): Promise<TransferRow[]> {
  const transfers: Transfer[] = [
    { row: "20 MB up, one base64 string", path: upload, body: base64(), atOnce: 1 },
    { row: "the same, 4 at once", path: upload, body: base64(), atOnce: 4 },
    { row: "20 MB up, many small values", path: upload, body: values(), atOnce: 1 },
    { row: "the same, 4 at once", path: upload, body: values(), atOnce: 4 },
    { row: "5,000 events down", path: "/v2/qwen3-32b-awq/openai/v1/chat/completions", body: chat(), atOnce: 1 },
  ];
  const rows: TransferRow[] = [];
  for (const transfer of transfers) rows.push(await measure(stage, transfer, rounds));
  return rows;
}

async function measure({ servers, tokens }: Stage, transfer: Transfer, rounds: number): Promise<TransferRow> {
  const token = tokens[0] ?? "";
  const subjects = { passthrough: taken(servers.passthrough), gateway: taken(servers.gateway) };
  const { passthrough, gateway } = subjects;
  for (const { server } of [passthrough, gateway]) await warmUp(server, transfer, token);
  const base = { passthrough: servers.passthrough.memory().now, gateway: servers.gateway.memory().now };
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? [passthrough, gateway] : [gateway, passthrough];
    for (const { server, times, cpu } of order) {
      const before = server.cpuMs();
      times.push(await timed(() => atOnce(server, transfer, token)));
      cpu.push(server.cpuMs() - before);
    }
  }
  const grew = (subject: "passthrough" | "gateway") => servers[subject].memory().peak - base[subject];
  return {
    row: transfer.row,
    passthroughMs: median(passthrough.times),
    gatewayMs: median(gateway.times),
    time: paired(gateway.times, passthrough.times),
    cpu: paired(gateway.cpu, passthrough.cpu),
    addedMB: (grew("gateway") - grew("passthrough")) / 1e6,
  };
}

function taken(server: WorkerdProcess): { server: WorkerdProcess; times: number[]; cpu: number[] } {
  return { server, times: [], cpu: [] };
}

/** A fresh process, since memory that was once taken is not given back; its code warm, its objects awake. */
async function warmUp(server: WorkerdProcess, transfer: Transfer, token: string): Promise<void> {
  await server.kill9();
  await server.restart();
  const small = transfer.body.byteLength < 1024 ? transfer.body : Buffer.from('{"input":{"image":"QUJD"}}');
  for (let n = 0; n < 20; n++) await send(server, transfer.path, small, token);
  server.forgetPeak();
}

async function atOnce(server: WorkerdProcess, { path, body, atOnce: many }: Transfer, token: string): Promise<void> {
  await Promise.all(Array.from({ length: many }, () => send(server, path, body, token)));
}

/** By node:http, which writes a buffer as it is. */
function send(server: WorkerdProcess, path: string, body: Buffer, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const options = { method: "POST", headers: { ...headers, "Content-Length": body.byteLength } };
    const sent = request(server.url + path, options, (response) => {
      response.resume();
      if (response.statusCode !== 200) reject(new Error(`${path} answered ${response.statusCode}`));
      response.once("end", resolve);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}
