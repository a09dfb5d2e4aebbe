// What a meter owes until it is done, whichever call was lost: results that KV has not taken, webhooks nobody has told.
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/contract/limits.ts";
import { type OpenRow, readOpen } from "../../../src/gateway/quota/job-rows.ts";
import type { UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, noon, request, stubOf } from "./admissions.ts";
import { newWorld, type World, wake } from "./planted-meter.ts";

const url = "https://app.example.org/hook";
const secondMs = 1000;
const maxRings = 300;
const hourMs = 3600 * secondMs;
const dayMs = 24 * hourMs;
const body = '{"id":"one","status":"COMPLETED","output":{"image_url":"https://x.example/a.png"}}';
const done: UpstreamAnswer = { status: "COMPLETED", costMicroUsd: 9000, completedAt: noon, body };

let world: World;
let sent: string[];
beforeEach(() => {
  world = newWorld(noon);
  sent = [];
  vi.spyOn(console, "warn").mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

interface Planted {
  readonly meter: UserMeter;
  readonly state: DurableObjectState;
  /** The alarm rings when it is due, until that holds. */
  readonly ringUntil: (holds: () => unknown) => Promise<void>;
  /** Another object over the same rows. */
  readonly evict: () => UserMeter;
}

function planted(act: (planted: Planted) => Promise<void>): Promise<void> {
  return runInDurableObject(stubOf("user:ada"), async (_object, state) => {
    const receiving = () => {
      const meter = wake(state, world);
      meter.describeEnd = ({ first }, status) => JSON.stringify({ id: first, status });
      meter.send = async (request) => {
        sent.push(await request.text());
        return new Response();
      };
      return meter;
    };
    const evict = () => {
      planted.meter = receiving();
      return planted.meter;
    };
    const ringUntil = async (holds: () => unknown) => {
      for (let rings = 0; !holds(); rings++) {
        if (rings > maxRings) throw new Error("it never came to that");
        world.now = Math.max(world.now, (await state.storage.getAlarm()) ?? Number.NaN);
        await planted.meter.alarm();
      }
    };
    const planted = { meter: receiving(), state, ringUntil, evict };
    await act(planted);
  });
}

const isMade = ({ state }: Planted) =>
  state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'debts'").toArray().length > 0;
const owed = (planted: Planted) =>
  isMade(planted) ? planted.state.storage.sql.exec("SELECT kind FROM debts").toArray() : [];
const isEnded = ({ meter }: Planted, admission: string) => meter.job(admission)?.endedAt !== null;

const owedResult = (meter: UserMeter, admission: string) => {
  const { owed } = meter.lastWord([admission]);
  return owed && new TextDecoder().decode(owed);
};

async function bound({ meter }: Planted, change: Parameters<typeof request>[0] = {}): Promise<string> {
  const job = request(change);
  await meter.admit(job);
  meter.bind([{ admission: job.admission, upstreamId: "ref" }]);
  return job.admission;
}

describe("fault M1: KV refuses a result that was paid for", () => {
  it.each(["refuses", "hangs"] as const)("keeps it until KV has it, where it %s", (keep) =>
    planted(async (planted) => {
      const admission = await bound(planted);
      world.ask = async () => done;
      world.keep = keep;
      await planted.ringUntil(() => isEnded(planted, admission));
      expect(planted.meter.job(admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
      expect(world.kept.size).toBe(0);
      expect(owedResult(planted.evict(), admission)).toBe(body);
      world.keep = "takes";
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(world.kept.get(`result/${admission}`)).toBe(body);
      expect(owedResult(planted.meter, admission)).toBeUndefined();
    }),
  );

  it("is tried ever more seldom, once an hour in the end, and for seven days", () =>
    planted(async (planted) => {
      const admission = await bound(planted);
      world.ask = async () => done;
      world.keep = "refuses";
      await planted.ringUntil(() => isEnded(planted, admission));
      await planted.ringUntil(() => owed(planted).length === 0);
      const gaps = world.putAt.slice(1).map((at, index) => at - (world.putAt[index] ?? 0));
      const doubled = [10, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600].map((s) => s * secondMs);
      expect(gaps.slice(0, doubled.length)).toEqual(doubled);
      expect(gaps.reduce((sum, gap) => sum + gap)).toBeGreaterThan(7 * dayMs - 2 * hourMs);
    }));

  it("holds one that is larger than a row, whole", () =>
    planted(async (planted) => {
      const admission = await bound(planted);
      const large = JSON.stringify({ output: "é".repeat(1_700_000) });
      world.ask = async () => ({ ...done, body: large });
      world.keep = "refuses";
      await planted.ringUntil(() => isEnded(planted, admission));
      world.keep = "takes";
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(world.kept.get(`result/${admission}`)).toBe(large);
    }));
});

/** A webhook says which it is, as the contract's does. */
const toldOf = (text: string) => JSON.stringify({ ...JSON.parse(text), webhook: url });

describe("fault M2: nobody tells the meter what its webhook is to be told", () => {
  it("asks by itself, and delivers once", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      expect(planted.meter.settle(ending(admission, { upstreamId: "ref" }))).toMatchObject({ wantsNotice: true });
      world.ask = async () => done;
      planted.evict();
      await planted.ringUntil(() => sent.length > 0);
      expect(world.now).toBe(noon + 10 * secondMs);
      world.now += dayMs;
      await planted.meter.alarm();
      expect(sent).toEqual([toldOf(body)]);
      expect(owed(planted)).toEqual([]);
    }));

  it("asks nothing where it was told in time", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      const ask = vi.fn(async () => done);
      world.ask = ask;
      planted.meter.settle(ending(admission, { upstreamId: "ref" }));
      planted.meter.notify(admission, body);
      await planted.ringUntil(() => sent.length > 0);
      world.now += dayMs;
      await planted.meter.alarm();
      expect(sent).toEqual([toldOf(body)]);
      expect(ask).not.toHaveBeenCalled();
    }));

  it("asks again where the upstream cannot be reached, and tells the status where it has forgotten the job", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      planted.meter.settle(ending(admission, { upstreamId: "ref", status: "FAILED" }));
      await planted.ringUntil(() => world.now > noon + hourMs);
      expect(sent).toEqual([]);
      world.ask = async () => "unknown";
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([toldOf(JSON.stringify({ id: admission, status: "FAILED" }))]);
      expect(owed(planted)).toEqual([]);
    }));

  it("owes nothing of a job that an accepted retry goes on with", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      planted.meter.settle(ending(admission, { upstreamId: "ref", status: "FAILED" }));
      const retry = request({ operation: "retry", retryOf: { admission, upstreamId: "ref" } });
      await planted.meter.admit(retry);
      planted.meter.bind([{ admission: retry.admission, upstreamId: "ref" }]);
      expect(owed(planted)).toEqual([]);
      world.ask = async () => done;
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([toldOf(body)]);
    }));
});

describe("fault: a retry with a webhook seems to have failed before it is accepted, by a clock that was set ahead", () => {
  const failure = '{"id":"one","status":"FAILED","error":"out of memory"}';
  const failed: UpstreamAnswer = { status: "FAILED", costMicroUsd: null, completedAt: noon, body: failure };
  const seeming = async (planted: Planted) => {
    const first = await bound(planted, { webhook: url });
    planted.meter.settle(ending(first, { upstreamId: "ref", status: "FAILED" }));
    planted.meter.notify(first, failure);
    const retry = request({ operation: "retry", retryOf: { admission: first, upstreamId: "ref" } });
    await planted.meter.admit(retry);
    world.ask = async () => failed;
    world.now += hourMs;
    await planted.ringUntil(() => isEnded(planted, retry.admission) && sent.length === 1);
    return retry.admission;
  };

  it("tells its true end, and not the failure of the run before it", () =>
    planted(async (planted) => {
      const retry = await seeming(planted);
      planted.meter.bind([{ admission: retry, upstreamId: "ref" }]);
      world.ask = async () => done;
      await planted.ringUntil(() => owed(planted).length === 0 && sent.length > 1);
      expect(sent).toEqual([toldOf(failure), toldOf(body)]);
    }));

  it("tells what the upstream says where nobody tells that it was accepted", () =>
    planted(async (planted) => {
      await seeming(planted);
      await planted.ringUntil(() => owed(planted).length === 0 && sent.length > 1);
      expect(sent).toEqual([toldOf(failure), toldOf(failure)]);
    }));
});

describe("fault M3: a job whose end is assumed", () => {
  it("tells its webhook that it timed out", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      world.ask = async () => "unknown";
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([toldOf(JSON.stringify({ id: admission, status: "TIMED_OUT" }))]);
      expect(planted.meter.job(admission)).toMatchObject({ status: "TIMED_OUT", isAssumed: true });
      expect(planted.meter.lastWord([admission]).status).toBe("TIMED_OUT");
    }));

  it("tells the truth where that comes within a minute", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      world.ask = async () => "unknown";
      await planted.ringUntil(() => isEnded(planted, admission));
      world.ask = async () => done;
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([toldOf(body)]);
      expect(planted.meter.job(admission)).toMatchObject({ status: "COMPLETED", isAssumed: false });
    }));

  it("tells nobody of one that the upstream may never have had", () =>
    planted(async (planted) => {
      const job = request({ webhook: url });
      await planted.meter.admit(job);
      planted.meter.doubt(job.admission);
      await planted.ringUntil(() => isEnded(planted, job.admission));
      expect(isMade(planted)).toBe(false);
    }));
});

describe("a job whose id is told after its end was assumed", () => {
  const lost = async (planted: Planted, change: Parameters<typeof request>[0] = {}) => {
    const job = request(change);
    await planted.meter.admit(job);
    await planted.ringUntil(() => isEnded(planted, job.admission));
    return job.admission;
  };

  it("tells its webhook what became of it, with the input", () =>
    planted(async (planted) => {
      const admission = await lost(planted, { webhook: url, webhookInput: '{"prompt":"a cat"}' });
      world.ask = async () => done;
      planted.meter.bind([{ admission, upstreamId: "ref" }]);
      planted.evict();
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([JSON.stringify({ ...JSON.parse(body), webhook: url, input: { prompt: "a cat" } })]);
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(sent).toHaveLength(1);
    }));

  it("tells its webhook that it timed out, where nobody knows more", () =>
    planted(async (planted) => {
      const admission = await lost(planted, { webhook: url });
      world.ask = async () => "unknown";
      planted.meter.bind([{ admission, upstreamId: "ref" }]);
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([toldOf(JSON.stringify({ id: admission, status: "TIMED_OUT" }))]);
    }));

  it("tells its webhook where an answer under way was the first to say the id", () =>
    planted(async (planted) => {
      const admission = await lost(planted, { webhook: url });
      planted.meter.settle(ending(admission, { upstreamId: "ref", status: "IN_PROGRESS" }));
      world.ask = async () => done;
      await planted.ringUntil(() => sent.length > 0);
      expect(sent).toEqual([toldOf(body)]);
    }));

  it("is charged what it cost, by the meter's own question", () =>
    planted(async (planted) => {
      const admission = await lost(planted);
      world.ask = async () => done;
      planted.meter.bind([{ admission, upstreamId: "ref" }]);
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(planted.meter.job(admission)).toMatchObject({ costMicroUsd: 9000, isAssumed: false });
    }));

  it("keeps no input once the upstream would have forgotten it", () =>
    planted(async (planted) => {
      const admission = await lost(planted, { webhook: url, webhookInput: '{"prompt":"a cat"}' });
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(world.now).toBeLessThan(noon + limits.runRetentionMs + hourMs);
      expect(planted.state.storage.sql.exec("SELECT * FROM outbox_bodies").toArray()).toEqual([]);
      expect(planted.meter.job(admission)).toMatchObject({ status: "TIMED_OUT", isAssumed: true });
    }));
});

describe("a job whose end a notice alone told", () => {
  const noticed = (admission: string) => ending(admission, { upstreamId: "ref", isUntold: true });

  it("is kept for its owner before the upstream forgets it", () =>
    planted(async (planted) => {
      const admission = await bound(planted);
      planted.meter.settle(noticed(admission));
      world.ask = async () => done;
      planted.evict();
      await planted.ringUntil(() => world.kept.size > 0);
      expect(world.now).toBeLessThan(noon + limits.runRetentionMs);
      expect(world.kept.get(`result/${admission}`)).toBe(body);
      expect(owed(planted)).toEqual([]);
    }));

  it("is not asked about where its owner was told meanwhile", () =>
    planted(async (planted) => {
      const admission = await bound(planted);
      planted.meter.settle(noticed(admission));
      expect(owed(planted)).toHaveLength(1);
      planted.meter.settle(ending(admission, { upstreamId: "ref" }));
      expect(owed(planted)).toEqual([]);
    }));

  it("is kept too where the relay's word on its id came after the end", () =>
    planted(async (planted) => {
      const job = request();
      await planted.meter.admit(job);
      planted.meter.settle(ending(job.admission, { upstreamId: "ref", isUnproven: true, isUntold: true }));
      expect(planted.meter.job(job.admission)).toMatchObject({ status: "COMPLETED", isAssumed: true });
      planted.meter.bind([{ admission: job.admission, upstreamId: "ref" }]);
      world.ask = async () => done;
      await planted.ringUntil(() => world.kept.size > 0);
      expect(planted.meter.job(job.admission)).toMatchObject({ costMicroUsd: 9000, isAssumed: false });
    }));

  it("fault: is charged as known and kept where the relay tells its id while the alarm asks about it", () =>
    planted(async (planted) => {
      const job = request();
      await planted.meter.admit(job);
      planted.meter.lookAgain({ admission: job.admission, upstreamId: "ref" });
      world.ask = async () => {
        planted.meter.bind([{ admission: job.admission, upstreamId: "ref" }]);
        return done;
      };
      await planted.ringUntil(() => isEnded(planted, job.admission));
      expect(planted.meter.job(job.admission)).toMatchObject({ costMicroUsd: 9000, isAssumed: false });
      expect([...world.kept.keys()]).toEqual([`result/${job.admission}`]);
    }));

  it("fault: and also where it has expired by then", () =>
    planted(async (planted) => {
      const job = request();
      await planted.meter.admit(job);
      planted.meter.lookAgain({ admission: job.admission, upstreamId: "ref" });
      const expiresAt = () => {
        const row = planted.state.storage.sql
          .exec<OpenRow & Record<string, SqlStorageValue>>("SELECT * FROM jobs")
          .one();
        return readOpen(row).expiresAt;
      };
      let asked = 0;
      world.ask = async () => {
        if (world.now < expiresAt()) return { status: "IN_PROGRESS", costMicroUsd: null, completedAt: 0 };
        if (++asked === 1) planted.meter.bind([{ admission: job.admission, upstreamId: "ref" }]);
        return done;
      };
      await planted.ringUntil(() => isEnded(planted, job.admission));
      expect(asked).toBe(2);
      expect(planted.meter.job(job.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
    }));

  it("is told to no webhook where nobody but the notice named it: its handle may be another's job's", () =>
    planted(async (planted) => {
      const job = request({ webhook: url });
      await planted.meter.admit(job);
      planted.meter.settle(ending(job.admission, { upstreamId: "ref", isUnproven: true, isUntold: true }));
      world.ask = async () => "unknown";
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(sent).toEqual([]);
    }));

  it("is kept for who has its handle where nobody but the notice named it, and for nobody else", () =>
    planted(async (planted) => {
      const job = request();
      await planted.meter.admit(job);
      planted.meter.settle(ending(job.admission, { upstreamId: "ref", isUnproven: true, isUntold: true }));
      world.ask = async () => done;
      await planted.ringUntil(() => world.kept.size > 0);
      expect([...world.kept.keys()]).toEqual([`result/${job.admission}/ref`]);
    }));

  it("is told to its webhook and kept, each once", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      const ask = vi.fn(async () => done);
      world.ask = ask;
      planted.meter.settle(noticed(admission));
      planted.meter.notify(admission, body);
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(sent).toEqual([toldOf(body)]);
      expect(ask).toHaveBeenCalledOnce();
      expect([...world.kept.values()]).toEqual([body]);
    }));

  it("fault: is not forgotten before that, though a thousand end after it", { timeout: 30_000 }, () =>
    planted(async (planted) => {
      const first = await bound(planted);
      planted.meter.settle(noticed(first));
      const later = { completedAt: noon + 2 * secondMs };
      for (let others = 0; others < 1100; others++)
        planted.meter.settle({ ...noticed(await bound(planted)), ...later });
      expect(planted.meter.job(first)).toMatchObject({ status: "COMPLETED" });
    }),
  );
});

describe("fault: a job whose end was assumed since the alarm was late", () => {
  it("is asked about nevertheless, by an object that woke since", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { ttlMs: 10 * secondMs });
      world.now += hourMs;
      expect(planted.meter.job(admission)).toMatchObject({ status: "TIMED_OUT", isAssumed: true });
      world.ask = async () => done;
      planted.evict();
      await planted.ringUntil(() => planted.meter.job(admission)?.isAssumed === false);
      expect(planted.meter.job(admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
      expect(world.kept.get(`result/${admission}`)).toBe(body);
    }));
});

describe("a clock that is set back by an hour", () => {
  /** It is seen by the next call. */
  const setBack = ({ meter }: Planted) => {
    world.now -= hourMs;
    meter.usage({ plan: "unlimited", planFrom: "token", plans: "{}", token: undefined });
  };

  it("lets no webhook wait for it", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      planted.meter.send = async () => new Response(null, { status: 500 });
      planted.meter.settle(ending(admission, { upstreamId: "ref" }));
      planted.meter.notify(admission, body);
      await planted.meter.alarm();
      planted.evict();
      setBack(planted);
      await planted.ringUntil(() => sent.length > 0);
      expect(world.now).toBeLessThan(noon);
    }));

  it("lets no webhook wait for it that came while the clock ran ahead, in an object that died then", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url });
      world.now += hourMs;
      planted.meter.settle(ending(admission, { upstreamId: "ref" }));
      planted.meter.notify(admission, body);
      planted.evict();
      setBack(planted);
      await planted.ringUntil(() => sent.length > 0);
      expect(world.now).toBeLessThan(noon + hourMs / 2);
    }));

  it("fault: takes no input from the webhook of a retry", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url, webhookInput: '{"prompt":"a cat"}' });
      planted.meter.settle(ending(admission, { upstreamId: "ref", status: "FAILED" }));
      planted.meter.notify(admission, body);
      await planted.ringUntil(() => sent.length > 0);
      setBack(planted);
      await planted.meter.alarm();
      const retry = request({ operation: "retry", retryOf: { admission, upstreamId: "ref" } });
      await planted.meter.admit(retry);
      planted.meter.bind([{ admission: retry.admission, upstreamId: "ref" }]);
      world.ask = async () => done;
      await planted.ringUntil(() => sent.length > 1);
      expect(JSON.parse(sent[1] ?? "")).toMatchObject({ status: "COMPLETED", input: { prompt: "a cat" } });
    }));

  it("keeps no input for longer than a job may be retried", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { webhook: url, webhookInput: '{"prompt":"a cat"}' });
      planted.meter.settle(ending(admission, { upstreamId: "ref", status: "FAILED" }));
      planted.meter.notify(admission, body);
      await planted.ringUntil(() => sent.length > 0);
      setBack(planted);
      await planted.ringUntil(() => owed(planted).length === 0);
      expect(world.now).toBe(noon - hourMs + limits.runRetentionMs);
      expect(planted.state.storage.sql.exec("SELECT * FROM outbox_bodies").toArray()).toEqual([]);
    }));

  it("shortens no job, however often its meter wakes before the clock has caught up", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { ttlMs: 3 * hourMs });
      world.ask = async () => ({ status: "IN_PROGRESS", costMicroUsd: null, completedAt: 0 });
      setBack(planted);
      for (let wakes = 0; wakes < 5; wakes++) {
        planted.evict();
        world.now += 60 * secondMs;
        planted.meter.doubt(admission);
        await planted.meter.alarm();
      }
      expect(isEnded(planted, admission)).toBe(false);
    }));

  it("fault of torture: assumes the end of no job that the upstream is being asked about", () =>
    planted(async (planted) => {
      const admission = await bound(planted, { ttlMs: 20 * secondMs });
      world.ask = async () => {
        setBack(planted);
        world.ask = async () => done;
        return "unreachable";
      };
      await planted.ringUntil(() => world.now < noon);
      expect(isEnded(planted, admission)).toBe(false);
      await planted.ringUntil(() => isEnded(planted, admission));
      expect(planted.meter.job(admission)).toMatchObject({ status: "COMPLETED", isAssumed: false });
    }));

  it("gives no more time to a job whose id is told after it", () =>
    planted(async (planted) => {
      const told = request({ ttlMs: 10 * 60 * secondMs });
      await planted.meter.admit(told);
      setBack(planted);
      planted.meter.bind([{ admission: told.admission, upstreamId: "ref" }]);
      world.ask = async () => "unreachable";
      await planted.ringUntil(() => isEnded(planted, told.admission));
      expect(world.now).toBeLessThan(noon - hourMs / 2);
    }));

  it("lets no question wait for it, nor what nobody bound keep its place", () =>
    planted(async (planted) => {
      const admission = await bound(planted);
      const lost = request();
      await planted.meter.admit(lost);
      world.ask = async () => done;
      setBack(planted);
      await planted.ringUntil(() => isEnded(planted, admission) && isEnded(planted, lost.admission));
      expect(world.now).toBeLessThan(noon - hourMs / 2);
    }));
});
