// Attacks by retries: one job of the upstream is charged once, in whatever order its ends are polled, told and told again.
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacked, image, opened, settlesWithinMs, type User } from "../../e2e/support/attacked.ts";
import type { UpstreamJob } from "../../e2e/support/scripted-upstream.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { listenLocally } from "../../support/serve-locally.ts";

const costUsd = 0.5;
const failed = { status: "FAILED", error: "out of memory" };
const completed = { status: "COMPLETED", output: { cost: costUsd } };

let attacked: Attacked;
beforeAll(async () => {
  attacked = await Attacked.start();
});
afterAll(() => attacked.stop());

/** A job of one user, and all the handles that it got. */
class Chain {
  readonly handles: string[];
  readonly #user: User;
  readonly #job: UpstreamJob;

  constructor(user: User, handle: string, job: UpstreamJob) {
    this.#user = user;
    this.handles = [handle];
    this.#job = job;
  }

  static async begin(name: string): Promise<{ user: User; chain: Chain }> {
    const user = await attacked.user(name);
    const { handle, job } = await user.start(opened, {});
    return { user, chain: new Chain(user, handle, job) };
  }

  become(state: Readonly<Record<string, unknown>>): void {
    this.#job.state = state;
  }

  async poll(handle = this.handles[0] ?? ""): Promise<void> {
    await this.#user.status(opened, handle);
  }

  async notice(): Promise<void> {
    await attacked.notify(this.#job);
  }

  async retry(handle = this.handles[0] ?? ""): Promise<void> {
    const answer = await this.#user.ask("POST", `/v2/${opened}/retry/${handle}`);
    expect(answer.status, answer.text).toBe(200);
    this.handles.push(String(answer.body["id"]));
  }

  /** By every handle, by the notice, and by both after a restart, when nobody remembers what was told. */
  async tellAgain(): Promise<void> {
    for (const handle of this.handles) await this.poll(handle);
    await this.notice();
    await attacked.server.kill9();
    await attacked.server.restart();
    await this.notice();
    for (const handle of this.handles) await this.poll(handle);
  }
}

async function expectChargedOnce(user: User): Promise<void> {
  await user.expectMoney({ usd: costUsd, assumedUsd: 0, reservedUsd: 0 });
  const { jobs } = await user.usage();
  expect(jobs.filter(({ costUsd: usd }) => usd === costUsd)).toHaveLength(1);
  expect(jobs.filter(({ costUsd: usd }) => usd === null)).toEqual([]);
}

describe("attack C2: one job, failed and retried", { timeout: 60_000 }, () => {
  it("twice, each end polled, is charged once", async () => {
    const { user, chain } = await Chain.begin("c2-polled");
    for (const _ of [1, 2]) {
      chain.become(failed);
      await chain.poll();
      await chain.retry();
    }
    chain.become(completed);
    await chain.poll();
    await chain.tellAgain();
    await expectChargedOnce(user);
  });

  it("five times is charged once", async () => {
    const { user, chain } = await Chain.begin("c2-five");
    for (const _ of [1, 2, 3, 4, 5]) {
      chain.become(failed);
      await chain.poll();
      await chain.notice();
      await chain.retry();
    }
    chain.become(completed);
    await chain.tellAgain();
    await expectChargedOnce(user);
  });

  it("with nobody who polled in between is charged once", async () => {
    const { user, chain } = await Chain.begin("c2-unpolled");
    chain.become(failed);
    await chain.retry();
    chain.become(completed);
    await chain.poll();
    await chain.tellAgain();
    await expectChargedOnce(user);
  });

  it("by the handle of each retry is charged once", async () => {
    const { user, chain } = await Chain.begin("c2-handles");
    for (const _ of [1, 2, 3]) {
      chain.become(failed);
      await chain.poll(chain.handles.at(-1));
      await chain.retry(chain.handles.at(-1));
    }
    chain.become(completed);
    await chain.poll(chain.handles.at(-1));
    await chain.tellAgain();
    await expectChargedOnce(user);
  });

  it("after it was cancelled is charged once", async () => {
    const { user, chain } = await Chain.begin("c2-cancelled");
    const cancelled = await user.ask("POST", `/v2/${opened}/cancel/${chain.handles[0]}`);
    expect(cancelled.status, cancelled.text).toBe(200);
    await chain.retry();
    chain.become(completed);
    await chain.poll();
    await chain.tellAgain();
    await expectChargedOnce(user);
  });

  it("and told late of the end before the retry stays open, and reserved", async () => {
    const { user, chain } = await Chain.begin("c2-late");
    chain.become(failed);
    await chain.poll();
    await chain.retry();
    await chain.notice();
    await user.expectMoney({ usd: 0, reservedUsd: 1 });
    chain.become(completed);
    await chain.tellAgain();
    await expectChargedOnce(user);
  });
});

it("attack M10: a retried job's webhook is told of its last end", { timeout: 60_000 }, async () => {
  const told: { id: string; status: string }[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => {
      body += data;
    });
    request.on("end", () => {
      told.push(JSON.parse(body));
      response.end();
    });
  });
  const webhook = `${await listenLocally(receiver)}/told`;
  try {
    const user = await attacked.user("m10");
    const { handle, job } = await user.start(opened, {}, { webhook });
    job.state = failed;
    await attacked.notify(job);
    await eventually("the first end", settlesWithinMs, async () => told.length > 0);
    expect(told[0]?.status).toBe("FAILED");
    const retried = await user.ask("POST", `/v2/${opened}/retry/${handle}`);
    expect(retried.status, retried.text).toBe(200);
    job.state = completed;
    await attacked.notify(job);
    await eventually("the last end", settlesWithinMs, async () => told.some(({ status }) => status === "COMPLETED"));
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
});

it("attack L2: no end lies before its admission, and a picture's days begin at its own end", {
  timeout: 60_000,
}, async () => {
  const user = await attacked.user("l2");
  const { handle, job } = await user.start(image, { prompt: "a lighthouse" });
  job.state = { ...failed, delayTime: 10, executionTime: 10 };
  await user.status(image, handle);
  // Long enough that what is counted from the first admission lies before the second.
  await setTimeout(1500);
  const retriedAt = Date.now();
  const retried = await user.ask("POST", `/v2/${image}/retry/${handle}`);
  expect(retried.status, retried.text).toBe(200);
  const output = { image_url: `${attacked.upstream.url}/pictures/one.jpeg`, cost: 0.01 };
  job.state = { status: "COMPLETED", delayTime: 10, executionTime: 10, output };
  const { body } = await user.status(image, String(retried.body["id"]));
  await user.expectMoney({ usd: 0.01, reservedUsd: 0 });
  const { jobs } = await user.usage();
  expect(jobs.filter(({ admittedAt, endedAt }) => endedAt !== null && endedAt < admittedAt)).toEqual([]);
  const { expires_at: expiresAt } = body["output"] as { expires_at: string };
  expect(Date.parse(expiresAt)).toBeGreaterThanOrEqual(retriedAt + 7 * 24 * 60 * 60 * 1000);
});

describe("attack M2: a truth that comes after an assumption, in the same isolate", { timeout: 60_000 }, () => {
  it.each([
    ["cancelled at no stated cost", { status: "CANCELLED" }],
    ["completed at no stated cost", { status: "COMPLETED", output: {} }],
    ["completed at a cost that cannot be true", { status: "COMPLETED", output: { cost: -1 } }],
  ])("corrects what was %s", async (what, state) => {
    const user = await attacked.user(`m2-${what.replaceAll(" ", "-")}`);
    const { handle, job } = await user.start(opened, {});
    job.state = state;
    await user.status(opened, handle);
    await user.expectMoney({ reservedUsd: 0 });
    job.state = completed;
    await user.status(opened, handle);
    await user.expectMoney({ usd: costUsd, assumedUsd: 0, reservedUsd: 0 });
  });
});
