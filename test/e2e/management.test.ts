// The management interface of a real process: an endpoint made there runs jobs, survives a crash, and the lines of docs/management.md work.
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { ScriptedWorker } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";
import { blocksUnder } from "./support/readme.ts";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

async function manage<T = { id: string }>(method: string, path: string, body?: object): Promise<T> {
  const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const response = await fetch(`${server.url}/v1${path}`, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

const job = async (path: string, body?: object): Promise<Record<string, unknown>> => {
  const response = await server.platform(path, body ? { method: "POST", body: JSON.stringify(body) } : {});
  return { http: response.status, ...((await response.json()) as object) };
};

describe("an endpoint that the operator made", () => {
  it("runs jobs by an attached worker, before and after a crash, bills them, and is gone for good", async () => {
    const { id: templateId } = await manage("POST", "/templates", {
      name: "e2e",
      imageName: "example.com/worker:1",
      isServerless: true,
    });
    const { id } = await manage("POST", "/endpoints", { templateId, gpuTypeIds: ["NVIDIA L4"] });
    const environment = { endpoint: id, url: server.url, key: testSettings.PLATFORM_API_KEY, worker: "w1" };
    const worker = new ScriptedWorker(workerEnvironment(environment), ({ input }) => ({
      output: { echo: input["text"] },
    }));
    worker.start();
    try {
      const first = await job(`${id}/runsync`, { input: { text: "one" } });
      expect(first).toMatchObject({ http: 200, status: "COMPLETED", output: { echo: "one" }, workerId: "w1" });
      await server.kill9();
      await server.restart();
      const second = await job(`${id}/runsync`, { input: { text: "two" } });
      expect(second).toMatchObject({ status: "COMPLETED", output: { echo: "two" } });
      const executed = Number(first["executionTime"]) + Number(second["executionTime"]);
      type Bill = { endpointId: string; timeBilledMs: number }[];
      const billed = await eventually("the bill", 20_000, async () => {
        const [record] = await manage<Bill>("GET", "/billing/endpoints?bucketSize=year");
        return record && record.timeBilledMs >= executed && record;
      });
      expect(billed).toMatchObject({ endpointId: id, timeBilledMs: executed });
      await manage("DELETE", `/endpoints/${id}`);
      expect((await job(`${id}/run`, { input: {} })).http).toBe(404);
      expect((await job(`${id}/status/${first["id"]}`)).http).toBe(404);
    } finally {
      await worker.leave();
    }
  });
});

describe("docs/management.md", () => {
  it("has lines that work as they stand", async () => {
    const env = { ...process.env, GATEWAY: server.url, ADMIN_TOKEN: testSettings.ADMIN_TOKEN };
    const lines = blocksUnder("docs/management.md", "A walk through it", "bash").join("\n");
    expect(lines).toMatch(/curl/);
    const { status, stdout, stderr } = spawnSync("bash", ["--norc", "-euo", "pipefail", "-c", lines], {
      env,
      encoding: "utf8",
    });
    expect(status, `${stdout}\n${stderr}`).toBe(0);
    expect(stdout).toContain('"desiredStatus":"EXITED"');
    for (const path of ["templates", "endpoints", "pods", "networkvolumes", "containerregistryauth"]) {
      expect(await manage<unknown[]>("GET", `/${path}?includeEndpointBoundTemplates=true`), path).not.toContainEqual(
        expect.objectContaining({ name: expect.stringMatching(/^(echo|data|mine)$/) }),
      );
    }
  });
});
