// The client's webhook: once a job, signed so that the standard's own check accepts it, tried three times at most.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { signingKeysOf } from "../../../src/gateway/identity/signing.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const url = "https://app.example.org/hook";
const stub = () => stubOf("user:ada");
const meter = () => meterOf("user:ada");
const sent: { headers: Map<string, string>; body: string }[] = [];
const at = (now: number, status = 200) =>
  runInDurableObject(stub(), (object) => {
    object.clock = () => now;
    object.send = async (request) => {
      sent.push({ headers: new Map(request.headers), body: await request.text() });
      return new Response(null, { status });
    };
  });

/** On a machine that is busy, too. */
const eventually = (holds: () => unknown) => vi.waitFor(holds, { timeout: 20_000, interval: 20 });

async function finished(webhook: string | undefined = url, body = '{"status":"COMPLETED"}'): Promise<string> {
  const job = request({ webhook });
  await meter().admit(job);
  await meter().settle(ending(job.admission));
  await meter().notify(job.admission, body);
  return job.admission;
}

async function failed(admission: string): Promise<void> {
  await meter().bind([{ admission, upstreamId: "job-1" }]);
  await meter().settle(ending(admission, { status: "FAILED", upstreamId: "job-1" }));
}

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  sent.length = 0;
  return at(noon);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("a client's webhook", () => {
  it("is wanted until its body is there, and delivered once", async () => {
    const job = request({ webhook: url });
    await meter().admit(job);
    expect(await meter().settle(ending(job.admission))).toMatchObject({ first: true, wantsNotice: true });
    expect(await meter().settle(ending(job.admission))).toMatchObject({ first: false, wantsNotice: true });
    await meter().notify(job.admission, "{}");
    await meter().notify(job.admission, '{"second":true}');
    expect(await meter().settle(ending(job.admission))).toMatchObject({ wantsNotice: false });
    await runDurableObjectAlarm(stub());
    await runDurableObjectAlarm(stub());
    expect(sent).toHaveLength(1);
    expect(sent[0]?.body).toBe(`{"webhook":"${url}"}`);
  });

  it.each([
    ["released", async (id: string) => meter().release(id)],
    ["told", async (id: string) => meter().notify(id, "{}")],
    [
      "told when nobody could retry it any more",
      async (id: string) => {
        await failed(id);
        await at(noon + 31 * 60_000);
        await meter().notify(id, "{}");
      },
    ],
    [
      "told, and taken over by a retry that was told before",
      async (first: string) => {
        const retry = request({ operation: "retry", retryOf: { admission: first, upstreamId: "job-1" }, webhook: url });
        await failed(first);
        await meter().notify(first, "{}");
        await meter().admit(retry);
        await meter().notify(retry.admission, "{}");
        await meter().bind([{ admission: retry.admission, upstreamId: "job-1" }]);
        await runDurableObjectAlarm(stub());
      },
    ],
  ])("leaves no input behind where the job was %s", async (_, end) => {
    const job = request({ webhook: url, webhookInput: '{"prompt":"x"}' });
    await meter().admit(job);
    await end(job.admission);
    await runDurableObjectAlarm(stub());
    const left = await runInDurableObject(stub(), (_object, { storage: { sql } }) =>
      sql.exec("SELECT admission FROM outbox_bodies").toArray(),
    );
    expect(left).toEqual([]);
  });

  it("carries a signature that its secret verifies", async () => {
    const body = JSON.stringify({ output: "é€😀".repeat(700_000) });
    const id = await finished(url, body);
    await runDurableObjectAlarm(stub());
    await eventually(() => expect(sent).toHaveLength(1));
    const [request] = sent;
    expect(request?.headers.get("webhook-id")).toBe(id);
    expect(request?.headers.get("webhook-timestamp")).toBe(String(noon / 1000));
    const reading = readConfig(env);
    const [secret = ""] = reading.ok ? await signingKeysOf(reading.config).webhookSecrets() : [];
    const raw = Uint8Array.from(atob(secret.replace("whsec_", "")), (character) => character.charCodeAt(0));
    const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    const [version, signature = ""] = request?.headers.get("webhook-signature")?.split(",") ?? [];
    const mac = Uint8Array.from(atob(signature), (character) => character.charCodeAt(0));
    const text = request?.body;
    expect(text).toBe(`${body.slice(0, -1)},"webhook":"${url}"}`);
    const signed = new TextEncoder().encode(`${id}.${noon / 1000}.${text}`);
    expect(version).toBe("v1");
    expect(await crypto.subtle.verify("HMAC", key, mac, signed)).toBe(true);
  });

  it.each([
    ["an error", 500],
    ["a redirect", 302],
  ])("is tried twice more, ten seconds apart, after %s", async (_name, status) => {
    await at(noon, status);
    await finished();
    await runDurableObjectAlarm(stub());
    for (let time = 1; time < 6; time++) {
      await at(noon + time * 10_000 - 1, status);
      await runDurableObjectAlarm(stub());
      expect(sent).toHaveLength(Math.min(time, 3));
      await at(noon + time * 10_000, status);
      await runDurableObjectAlarm(stub());
    }
    expect(sent).toHaveLength(3);
  });

  it("is not sent a fourth time where an older release began the third", async () => {
    await at(noon, 500);
    await finished();
    await runInDurableObject(stub(), (_object, state) => {
      state.storage.sql.exec("UPDATE outbox SET tries = 3");
    });
    await runDurableObjectAlarm(stub());
    expect(sent).toHaveLength(0);
  });

  it.each(["http://app.example.org/hook", "https://10.0.0.1/", "https://metadata.internal/"])(
    "is never sent to %s",
    async (target) => {
      await finished(target);
      await runDurableObjectAlarm(stub());
      expect(sent).toHaveLength(0);
    },
  );

  it("comes of the meter's own question as well", async () => {
    const job = request({ webhook: url });
    await meter().admit(job);
    await meter().bind([{ admission: job.admission, upstreamId: "ref" }]);
    await runInDurableObject(stub(), (object) => {
      object.ask = async () => ({ status: "FAILED", costMicroUsd: null, completedAt: noon, body: '{"a":1}' });
    });
    await at(noon + 600_000);
    await runDurableObjectAlarm(stub());
    await runDurableObjectAlarm(stub());
    expect(sent[0]?.body).toBe(`{"a":1,"webhook":"${url}"}`);
  });
});

describe("fault: the object dies in the middle of a webhook's try", () => {
  const columns = "tries, begun, dueAt";
  type Row = { readonly tries: number; readonly begun: number; readonly dueAt: number };
  /** What an object leaves that dies as the receiver is asked: what is written then, and nothing that comes after. */
  const ringAndDie = (now: number) =>
    runInDurableObject(stub(), async (object, { storage: { sql } }) => {
      let left: Row | undefined;
      object.clock = () => now;
      object.send = async (request) => {
        sent.push({ headers: new Map(request.headers), body: await request.text() });
        left = sql.exec<Row>(`SELECT ${columns} FROM outbox`).one();
        return new Response(null, { status: 500 });
      };
      await object.alarm();
      if (left) sql.exec(`UPDATE outbox SET (${columns}) = (?, ?, ?)`, left.tries, left.begun, left.dueAt);
    });
  const againMs = 20_000;

  it("it uses up none of the three, since it may never have been made", async () => {
    await finished();
    await ringAndDie(noon);
    await ringAndDie(noon + againMs);
    for (let time = 2; time < 8; time++) {
      await at(noon + time * againMs, 500);
      await runDurableObjectAlarm(stub());
    }
    expect(sent).toHaveLength(2 + 3);
  });

  it("and three times more at most, where it is the webhook that it dies of", async () => {
    await finished();
    for (let time = 0; time < 9; time++) await ringAndDie(noon + time * againMs);
    expect(sent).toHaveLength(6);
    expect(await runInDurableObject(stub(), (_, { storage }) => storage.getAlarm())).toBeGreaterThan(noon + 86_400_000);
  });
});

describe("fault H2: a receiver that hangs", () => {
  const slow = "https://slow.example.org/hook";
  const told: string[] = [];
  /** So many receivers at the slow host have been let answer. */
  let answering = 0;
  const heard = (at: string) => told.filter((to) => to === at).length;

  /** A promise of another object's would be none of this one's: it looks now and then. */
  const hang = (now = noon) =>
    runInDurableObject(stub(), (object) => {
      object.clock = () => now;
      object.send = async (request) => {
        told.push(request.url);
        const place = request.url === slow ? heard(slow) : 0;
        while (place > answering) await scheduler.wait(2);
        return new Response(null, { status: 200 });
      };
    });
  const ring = () => runDurableObjectAlarm(stub());
  const owed = () =>
    runInDurableObject(stub(), (_, { storage }) => storage.sql.exec("SELECT * FROM outbox").toArray().length);

  beforeEach(async () => {
    answering = 0;
    told.length = 0;
    await hang();
  });
  afterEach(async () => {
    answering = Number.POSITIVE_INFINITY;
    await eventually(async () => {
      await ring();
      expect(await owed()).toBe(0);
    });
  });

  it("does not keep the meter from asking what became of jobs", async () => {
    for (let n = 0; n < 20; n++) await finished(slow);
    const job = request({});
    await meter().admit(job);
    await meter().bind([{ admission: job.admission, upstreamId: "ref" }]);
    const asked: string[] = [];
    await runInDurableObject(stub(), (object) => {
      object.ask = async ({ upstreamId }) => {
        asked.push(upstreamId);
        return { status: "COMPLETED", costMicroUsd: 7, completedAt: noon, body: "{}" };
      };
    });
    await hang(noon + 600_000);
    await ring();
    expect(asked).toEqual(["ref"]);
    expect(told).toEqual([slow, slow]);
  });

  it("holds up its own host's alone: the others' first tries are on time", async () => {
    for (let n = 0; n < 20; n++) await finished(slow);
    for (let n = 0; n < 4; n++) await finished(`https://app-${n}.example.org/hook`);
    await ring();
    await eventually(() => expect(told.length - heard(slow)).toBe(4));
    expect(heard(slow)).toBe(2);
  });

  it("has two places in all, however its address is spelled", async () => {
    const spelled = [
      "https://SLOW.example.org/hook",
      "https://slow.example.org:443/hook",
      "https://slow.example.org/./hook",
    ];
    for (const spelling of [...spelled, ...spelled]) await finished(spelling);
    await finished("https://app.example.org/hook");
    await ring();
    await eventually(() => expect(told.length - heard(slow)).toBe(1));
    expect(heard(slow)).toBe(2);
  });

  it("holds no admission up where 10,000 wait for it", { timeout: 60_000 }, async () => {
    await finished(slow);
    await runInDurableObject(stub(), (_, { storage: { sql } }) => {
      const numbers =
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000) SELECT 'many' || n";
      sql.exec(`INSERT INTO outbox (admission, url, tries, dueAt) ${numbers}, ?, 0, ? FROM n`, slow, noon);
      sql.exec(`INSERT INTO outbox_bodies (admission, part, bytes) ${numbers}, 0, x'7b7d' FROM n`);
    });
    answering = Number.POSITIVE_INFINITY;
    const tookMs: number[] = [];
    for (let n = 0; n < 100; n++) {
      await ring();
      const begun = performance.now();
      await meter().admit(request({}));
      tookMs.push(performance.now() - begun);
    }
    tookMs.sort((one, other) => one - other);
    expect(told.length).toBeGreaterThan(100);
    expect(tookMs[90]).toBeLessThan(50);
    await runInDurableObject(stub(), (_, { storage: { sql } }) => sql.exec("DELETE FROM outbox WHERE tries = 0"));
  });

  it("has six at most under way, and of large bodies what fits into 8 MB", async () => {
    const large = JSON.stringify({ output: "x".repeat(3_000_000) });
    answering = Number.POSITIVE_INFINITY;
    let underWay = 0;
    let most = 0;
    await runInDurableObject(stub(), (object) => {
      object.send = async (request) => {
        told.push(request.url);
        most = Math.max(most, ++underWay);
        await request.arrayBuffer();
        await scheduler.wait(20);
        underWay -= 1;
        return new Response();
      };
    });
    for (let n = 0; n < 6; n++) await finished(`https://app-${n}.example.org/hook`, large);
    await eventually(async () => {
      await ring();
      expect(told).toHaveLength(6);
    });
    expect(most).toBe(2);
  });

  it("is not asked for a place again and again: the next ring is when another is due, or one has ended", async () => {
    for (let n = 0; n < 5; n++) await finished(slow);
    await ring();
    expect(await runInDurableObject(stub(), (_, { storage }) => storage.getAlarm())).toBeGreaterThan(noon + 1000);
    answering = 1;
    await eventually(async () => {
      await ring();
      expect(told).toHaveLength(3);
    });
  });

  it("is given all of them in the end", async () => {
    for (let n = 0; n < 9; n++) await finished(slow);
    answering = Number.POSITIVE_INFINITY;
    await eventually(async () => {
      await ring();
      expect(await owed()).toBe(0);
    });
    expect(told).toHaveLength(9);
  });
});

it("a configuration that is wrong uses up no try", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  await finished();
  const secret = env.SIGNING_SECRET;
  env.SIGNING_SECRET = "";
  for (let time = 0; time < 5; time++) {
    await at(noon + time * 10_000);
    await runDurableObjectAlarm(stub());
  }
  expect(sent).toHaveLength(0);
  env.SIGNING_SECRET = secret;
  await at(noon + 50_000);
  await runDurableObjectAlarm(stub());
  await eventually(() => expect(sent).toHaveLength(1));
});
