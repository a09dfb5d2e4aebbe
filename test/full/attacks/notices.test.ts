// Attacks through `/hooks/…`: whoever learns a job's hook may knock, and nothing else.
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerEnvironment } from "../../../src/cli/worker-env.ts";
import { Attacked, image, opened, openedUsd, settlesWithinMs, staysMs } from "../../e2e/support/attacked.ts";
import { exchange } from "../../e2e/support/exchange.ts";
import { send } from "../../e2e/support/scripted-upstream.ts";
import { Server } from "../../support/serve.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { ScriptedWorker } from "../../support/serve-worker.ts";
import { testSettings } from "../../support/settings.ts";

const running = { status: "IN_PROGRESS" };
const dear = { status: "COMPLETED", output: { cost: 5 } };
const forgeries = [
  ["for nothing", { status: "COMPLETED", output: { cost: 0 } }],
  ["that failed", { status: "FAILED" }],
  ["that was cancelled", { status: "CANCELLED" }],
  ["at no cost", { status: "COMPLETED", output: {} }],
] as const;

let attacked: Attacked;
beforeAll(async () => {
  // What is shared can be poisoned for others, too.
  attacked = await Attacked.start({ REUSE_SCOPE: "shared" });
});
afterAll(() => attacked.stop());

describe("attack H3: a forged notice, with the right URL", { timeout: 60_000 }, () => {
  it.each(forgeries)("of a job %s changes nothing of one that runs", async (what, forged) => {
    const user = await attacked.user(`h3-${what.replaceAll(" ", "-")}`);
    const { handle, job } = await user.start(opened, {});
    job.state = running;
    await attacked.notify(job, { id: job.id, ...forged });
    await user.expectMoney({ usd: 0, reservedUsd: openedUsd });
    expect((await user.status(opened, handle)).body["status"]).toBe("IN_PROGRESS");
    job.state = dear;
    await attacked.notify(job, { id: job.id, ...forged });
    await user.expectMoney({ usd: 5, assumedUsd: 0, reservedUsd: 0 });
    await attacked.notify(job, { id: job.id, ...forged });
    await user.expectMoney({ usd: 5, assumedUsd: 0, reservedUsd: 0 });
  });

  it("of another job's id binds nothing", async () => {
    const user = await attacked.user("h3-other");
    const { job: cheap } = await user.start(opened, {});
    const { job } = await user.start(opened, {});
    cheap.state = { status: "COMPLETED", output: { cost: 0 } };
    job.state = running;
    await attacked.notify(job, { id: cheap.id, ...cheap.state });
    job.state = dear;
    await attacked.notify(job);
    await attacked.notify(cheap);
    await user.expectMoney({ usd: 5, assumedUsd: 0, reservedUsd: 0 });
  });

  it("with a picture of the forger's is not the next user's picture", async () => {
    const input = { prompt: "a lighthouse", seed: 7 };
    const mallory = await attacked.user("mallory");
    const { job } = await mallory.start(image, input);
    job.state = running;
    const output = { image_url: `${attacked.upstream.url}/pictures/forged.jpeg`, cost: 0 };
    await attacked.notify(job, { id: job.id, status: "COMPLETED", output });
    const victim = await attacked.user("victim");
    const answer = await victim.run(image, input);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers.get("X-Cache")).not.toBe("HIT");
  });
});

describe("attack H3: the hook", () => {
  it.each(["run", "runsync"])("that the upstream repeats in its answer to %s is not in ours", async (operation) => {
    const user = await attacked.user(`h3-echo-${operation}`);
    attacked.upstream.scripts.set(opened, (asked, response) => {
      if (asked.operation !== operation) return false;
      const { webhook, input } = JSON.parse(asked.text) as { webhook: string; input: object };
      send(response, 200, { id: `echo-${operation}`, status: "IN_PROGRESS", webhook, input });
      return true;
    });
    const answer = await user.ask("POST", `/v2/${opened}/${operation}`, { input: { prompt: "a secret" } });
    attacked.upstream.scripts.delete(opened);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.text).not.toContain("/hooks/");
    expect(Object.keys(answer.body)).not.toContain("input");
  });

  it("that the upstream repeats in its status is not in ours", async () => {
    const user = await attacked.user("h3-echo-status");
    const { handle, job } = await user.start(opened, {});
    job.state = { ...running, webhook: job.webhook, input: { prompt: "a secret" } };
    const answer = await user.status(opened, handle);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.text).not.toContain("/hooks/");
    expect(Object.keys(answer.body)).not.toContain("input");
  });
});

it("attack H3: a worker of the embedded platform that shows its job gives no hook to settle by", {
  timeout: 60_000,
}, async () => {
  const endpoint = "echo";
  const server = await Server.start({ settings: { ENDPOINTS: endpoint } });
  const attached = { endpoint, url: server.url, key: testSettings.PLATFORM_API_KEY, worker: "w1" };
  const worker = new ScriptedWorker(workerEnvironment(attached), (job) => ({ output: { job } })).start();
  try {
    const change = { passthrough: true, maxUsd: openedUsd };
    await exchange(server, "PUT", `/admin/models/${endpoint}`, testSettings.ADMIN_TOKEN, change);
    const asked = { user: "mallory", plan: "unlimited" };
    const { token } = await exchange<{ token: string }>(server, "POST", "/tokens", testSettings.APP_SECRET, asked);
    const { id } = await exchange<{ id: string }>(server, "POST", `/v2/${endpoint}/run`, token, { input: {} });
    const ended = await eventually("the job's end", settlesWithinMs, async () => {
      const path = `/v2/${endpoint}/status/${id}`;
      const job = await exchange<{ status: string; output: { job: { id: string } } }>(server, "GET", path, token);
      return job.status === "COMPLETED" && job;
    });
    const spent = async () => {
      const path = "/admin/users/mallory";
      return (await exchange<{ spent: object }>(server, "GET", path, testSettings.ADMIN_TOKEN)).spent;
    };
    const due = { usd: openedUsd, assumedUsd: openedUsd, reservedUsd: 0 };
    await eventually("the assumed charge", settlesWithinMs, async () => {
      expect(await spent()).toEqual(due);
      return true;
    });
    const [hook] = /\/hooks\/[\w.-]+/.exec(JSON.stringify(ended.output)) ?? [];
    if (hook === undefined) return;
    const forged = { id: ended.output.job.id, status: "COMPLETED", output: { cost: 0 } };
    await fetch(server.url + hook, { method: "POST", body: JSON.stringify(forged) });
    await setTimeout(staysMs);
    expect(await spent()).toEqual(due);
  } finally {
    await worker.leave();
    await server.stop();
  }
});
