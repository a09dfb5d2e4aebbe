// H4, text for nothing: it is streamed or shown in part, and then the job is cancelled, times out or is forgotten.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacked, type Money, settlesWithinMs, text, type User, usdAToken } from "../../e2e/support/attacked.ts";
import type { UpstreamJob } from "../../e2e/support/scripted-upstream.ts";
import { eventually } from "../../support/serve-eventually.ts";

const input = { messages: [{ role: "user", content: "Say much." }], sampling_params: { max_tokens: 10_000 } };
const image = "black-forest-labs-flux-1-dev";
const pieces = Array.from({ length: 60 }, (_, n) => `word ${n}, `);
const words = pieces.join("");
/** What was handed out, at the price of its tokens, without the input's. */
const dueUsd = Math.max(pieces.length, Math.ceil(words.length / 4)) * usdAToken;
const running = { status: "IN_PROGRESS" };
/** A job is given up a minute after its ttl, at the latest. */
const forgottenWithinMs = 110_000;

let attacked: Attacked;
beforeAll(async () => {
  attacked = await Attacked.start();
});
afterAll(() => attacked.stop());

interface Begun {
  readonly user: User;
  readonly handle: string;
  readonly job: UpstreamJob;
}

async function begin(name: string, policy: object = {}): Promise<Begun> {
  const user = await attacked.user(name);
  const { handle, job } = await user.start(text, input, { policy });
  job.state = running;
  return { user, handle, job };
}

async function stream({ user, handle, job }: Begun): Promise<void> {
  job.pieces = [...pieces];
  const answer = await user.ask("GET", `/v2/${text}/stream/${handle}`);
  expect(answer.status, answer.text).toBe(200);
  expect(answer.text).toContain(pieces.at(-1));
}

/** At least what was handed out, at most what was reserved, and nobody said so. */
async function expectPaid({ user }: Begun, withinMs = settlesWithinMs): Promise<void> {
  let money: Money = { usd: 0, assumedUsd: 0, reservedUsd: 0 };
  await eventually("the end of the reservation", withinMs, async () => {
    money = await user.money();
    return money.reservedUsd === 0;
  });
  const { jobs } = await user.usage();
  expect(money.usd).toBeGreaterThanOrEqual(dueUsd);
  expect(money.usd).toBeLessThanOrEqual(jobs[0]?.reservedUsd ?? 0);
  expect(money.assumedUsd).toBe(money.usd);
}

describe("attack H4: text for nothing", { concurrent: true, timeout: forgottenWithinMs + 30_000 }, () => {
  it("streamed, then cancelled", async () => {
    const begun = await begin("h4-cancel");
    await stream(begun);
    const cancelled = await begun.user.ask("POST", `/v2/${text}/cancel/${begun.handle}`);
    expect(cancelled.body["status"], cancelled.text).toBe("CANCELLED");
    await expectPaid(begun);
  });

  it("streamed in many small calls, then cancelled", async () => {
    const begun = await begin("h4-small-calls");
    for (const piece of pieces) {
      begun.job.pieces = [piece];
      await begun.user.ask("GET", `/v2/${text}/stream/${begun.handle}`);
    }
    await begun.user.ask("POST", `/v2/${text}/cancel/${begun.handle}`);
    await expectPaid(begun);
  });

  it("streamed as an array, then cancelled", async () => {
    const begun = await begin("h4-array");
    begun.job.pieces = [...pieces];
    const answer = await begun.user.ask("GET", `/v2/${text}/stream/${begun.handle}?format=array`);
    expect(answer.text).toContain(pieces.at(-1));
    await begun.user.ask("POST", `/v2/${text}/cancel/${begun.handle}`);
    await expectPaid(begun);
  });

  it("heard as events, then cancelled", async () => {
    const begun = await begin("h4-events");
    begun.job.pieces = [...pieces];
    const cancelled = eventually("the stream's call", settlesWithinMs, async () => {
      if (begun.job.pieces.length > 0) return false;
      return begun.user.ask("POST", `/v2/${text}/cancel/${begun.handle}`);
    });
    const events = await begun.user.ask("GET", `/v2/${text}/events/${begun.handle}`);
    await cancelled;
    expect(events.text).toContain(pieces.at(-1));
    await expectPaid(begun);
  });

  it("streamed, then out of its executionTimeout", async () => {
    const begun = await begin("h4-timeout", { executionTimeout: 5000 });
    await stream(begun);
    begun.job.state = { status: "TIMED_OUT" };
    await begun.user.status(text, begun.handle);
    await expectPaid(begun);
  });

  it("shown in part by its status, then cancelled", async () => {
    const begun = await begin("h4-partial");
    begun.job.state = { ...running, output: words };
    const shown = await begun.user.status(text, begun.handle);
    expect(shown.text).toContain(pieces.at(-1));
    begun.job.state = { status: "CANCELLED" };
    await begun.user.status(text, begun.handle);
    await expectPaid(begun);
  });

  it("streamed from a job that was last seen in the queue, and forgotten after its ttl", async () => {
    const begun = await begin("h4-ttl", { ttl: 30_000 });
    begun.job.state = { status: "IN_QUEUE" };
    // The meter's alarm may ask before the ttl, and then knows of a job that waits. If it does not, it knows nothing.
    const isAsked = () =>
      attacked.upstream.asked.some(({ operation, job }) => operation === "status" && job === begun.job.id);
    await eventually("the alarm's question", 25_000, async () => isAsked()).catch(() => {});
    await stream(begun);
    attacked.upstream.jobs.splice(attacked.upstream.jobs.indexOf(begun.job), 1);
    await expectPaid(begun, forgottenWithinMs);
  });

  it("a picture that was shown in part, then cancelled, costs its reservation", async () => {
    const user = await attacked.user("h4-picture");
    const { handle, job } = await user.start(image, { prompt: "a lighthouse", width: 1000, height: 1000 });
    const { reservedUsd } = await user.money();
    expect(reservedUsd).toBeGreaterThan(0);
    job.state = { ...running, output: { preview: "half of it" } };
    expect((await user.status(image, handle)).text).toContain("half of it");
    job.state = { status: "CANCELLED" };
    await user.status(image, handle);
    await user.expectMoney({ usd: reservedUsd, assumedUsd: reservedUsd, reservedUsd: 0 });
  });

  it("and a cost that the upstream states for what was cancelled wins", async () => {
    const begun = await begin("h4-stated");
    await stream(begun);
    begun.job.state = { status: "CANCELLED", output: [{ cost: 0.002 }] };
    await begun.user.status(text, begun.handle);
    await begun.user.expectMoney({ usd: 0.002, assumedUsd: 0, reservedUsd: 0 });
  });

  it("and a job of which nothing was handed out is cancelled for nothing", async () => {
    const { user, handle } = await begin("h4-nothing");
    await user.ask("POST", `/v2/${text}/cancel/${handle}`);
    await user.expectMoney({ usd: 0, reservedUsd: 0 });
  });
});
