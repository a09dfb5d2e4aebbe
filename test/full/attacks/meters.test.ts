// Attacks on meters themselves: hits that nobody counts, readers who leave objects behind, networks of many addresses, keys under openai/.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacked, image, settlesWithinMs, text } from "../../e2e/support/attacked.ts";
import { type Script, send } from "../../e2e/support/scripted-upstream.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { testSettings } from "../../support/settings.ts";

const messages = [{ role: "user", content: "Say something." }];
const usage = { prompt_tokens: 10, completion_tokens: 90, total_tokens: 100 };
const costUsd = 0.001;
const chatOf = (content: string) => ({
  id: "chat-1",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  usage,
});
const events = [
  `data: ${JSON.stringify({ id: "chat-1", choices: [{ delta: { content: "Some" } }] })}\n\n`,
  `data: ${JSON.stringify({ id: "chat-1", choices: [{ delta: { content: "thing" } }] })}\n\n`,
  `data: ${JSON.stringify({ id: "chat-1", choices: [], usage })}\n\n`,
  "data: [DONE]\n\n",
];

let attacked: Attacked;
beforeAll(async () => {
  attacked = await Attacked.start({ REUSE_SCOPE: "shared" });
});
afterAll(() => attacked.stop());

it("attack M4: hits of many sessions of one address count as its requests", { timeout: 60_000 }, async () => {
  const limit = 5;
  await attacked.limitVisitors([{ unit: "requests", limit, per: "day" }]);
  const input = { prompt: "a lighthouse", seed: 7 };
  const maker = await attacked.user("maker");
  const { handle, job } = await maker.start(image, input);
  job.state = {
    status: "COMPLETED",
    output: { image_url: `${attacked.upstream.url}/pictures/one.jpeg`, cost: 0.01 },
  };
  await maker.status(image, handle);
  await eventually("a hit", settlesWithinMs, async () => {
    return (await maker.run(image, input)).headers.get("X-Cache") === "HIT";
  });
  const statuses: number[] = [];
  for (let n = 0; n < limit + 5; n++) {
    const visitor = await attacked.visitor("203.0.113.9");
    statuses.push((await visitor.run(image, input)).status);
  }
  expect(statuses).toEqual([...Array<number>(limit).fill(200), ...Array<number>(5).fill(429)]);
});

it("attack M4: a hit that its owner has already costs no further request", async () => {
  const input = { prompt: "a lighthouse", seed: 8 };
  const user = await attacked.user("m4-again", [{ unit: "requests", limit: 3, per: "day" }]);
  const { handle, job } = await user.start(image, input);
  job.state = {
    status: "COMPLETED",
    output: { image_url: `${attacked.upstream.url}/pictures/two.jpeg`, cost: 0.01 },
  };
  await user.status(image, handle);
  await eventually("a hit", settlesWithinMs, async () => {
    return (await attacked.user("m4-other")).run(image, input).then(({ headers }) => headers.get("X-Cache") === "HIT");
  });
  for (let n = 0; n < 10; n++) expect((await user.run(image, input)).headers.get("X-Cache")).toBe("HIT");
});

it("attack M7: whoever only reads leaves no meter behind", { timeout: 60_000 }, async () => {
  const quiet = await Attacked.start();
  try {
    for (let n = 0; n < 20; n++) {
      const visitor = await quiet.visitor(`198.51.100.${n}`);
      expect((await visitor.usage()).jobs).toEqual([]);
      expect((await visitor.ask("GET", "/images")).status).toBe(200);
      expect((await visitor.ask("GET", `/v2/${image}/requests`)).status).toBe(200);
    }
    expect((await quiet.ask("GET", "/admin/users/nobody", testSettings.ADMIN_TOKEN)).status).toBe(404);
    await quiet.server.kill9();
    expect(metersWithTables(quiet.server.disk)).toBe(0);
  } finally {
    await quiet.stop();
  }
});

/** The runtime keeps a small file for each object that was woken: what counts is whether there are tables in it. */
function metersWithTables(disk: string): number {
  const folder = join(disk, "UserMeter");
  const files = readdirSync(folder).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name));
  return files.filter((file) => {
    const database = new DatabaseSync(join(folder, file));
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    database.close();
    return tables.some(({ name }) => !/^(_cf_|sqlite_)/.test(String(name)));
  }).length;
}

it("attack M8: a /48 of IPv6 has ten times the limits of one of its /64s, not 65,536 times", {
  timeout: 60_000,
}, async () => {
  await attacked.limitVisitors([{ unit: "requests", limit: 1, per: "day" }]);
  let admitted = 0;
  for (let n = 1; n <= 30; n++) {
    const visitor = await attacked.visitor(`2001:db8:77:${n.toString(16)}::1`);
    const { status } = await visitor.run(image, { prompt: `a lighthouse, ${n}` });
    if (status === 200) admitted += 1;
    else expect(status).toBe(429);
  }
  expect(admitted).toBe(10);
  const elsewhere = await attacked.visitor("2001:db8:78::1");
  expect((await elsewhere.run(image, { prompt: "a lighthouse" })).status).toBe(200);
});

describe("attack M9: an Idempotency-Key under openai/", { timeout: 60_000 }, () => {
  const keyed = { "Idempotency-Key": "one" };
  const body = { messages, max_tokens: 100 };
  const scripted = (script: Script) => attacked.upstream.scripts.set(text, script);
  const says = (content: string) =>
    scripted((_, response) => {
      send(response, 200, chatOf(content));
      return true;
    });
  const calls = () => attacked.upstream.submitted(text).length;

  it("makes three equal calls one, with one answer and one charge", async () => {
    const user = await attacked.user("m9-equal");
    says("Something.");
    const before = calls();
    const answers = [];
    for (const _ of [1, 2, 3]) answers.push(await user.chat(body, keyed));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    expect(calls() - before).toBe(1);
    await user.expectMoney({ usd: costUsd, reservedUsd: 0 });
  });

  it("refuses another body", async () => {
    const user = await attacked.user("m9-other");
    says("Something.");
    expect((await user.chat(body, keyed)).status).toBe(200);
    const other = await user.chat({ ...body, max_tokens: 101 }, keyed);
    expect(other.status, other.text).toBe(409);
    expect(other.body["error"]).toMatchObject({ code: "IDEMPOTENCY_MISMATCH" });
  });

  it("says 409 IN_PROGRESS while the first call runs", async () => {
    const user = await attacked.user("m9-running");
    const held = Promise.withResolvers<void>();
    const came = Promise.withResolvers<void>();
    scripted(async (_, response) => {
      came.resolve();
      await held.promise;
      send(response, 200, chatOf("Something."));
      return true;
    });
    const before = calls();
    const first = user.chat(body, keyed);
    await came.promise;
    const second = user.chat(body, keyed);
    // Where keys are ignored the second is held, too: both are let go.
    const settled = await Promise.race([second, new Promise<undefined>((resolve) => setTimeout(resolve, 5000))]);
    held.resolve();
    await Promise.all([first, second]);
    expect(settled?.status).toBe(409);
    expect(settled?.body["error"]).toMatchObject({ code: "IN_PROGRESS" });
    expect(calls() - before).toBe(1);
  });

  it("replays a stream as events", async () => {
    const user = await attacked.user("m9-stream");
    scripted((_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" }).end(events.join(""));
      return true;
    });
    const before = calls();
    const first = await user.chat({ ...body, stream: true }, keyed);
    const again = await eventually("the kept answer", settlesWithinMs, async () => {
      const answer = await user.chat({ ...body, stream: true }, keyed);
      return answer.status !== 409 && answer;
    });
    expect(again.status, again.text).toBe(200);
    expect(again.headers.get("Content-Type")).toMatch(/^text\/event-stream/);
    expect(again.text).toBe(first.text);
    expect(calls() - before).toBe(1);
    await user.expectMoney({ usd: costUsd, reservedUsd: 0 });
  });

  it("never makes a second call for an answer that is too large to keep", async () => {
    const user = await attacked.user("m9-large");
    says("a".repeat(1_200_000));
    const before = calls();
    expect((await user.chat(body, keyed)).status).toBe(200);
    const again = await user.chat(body, keyed);
    expect(again.status, again.text.slice(0, 200)).toBe(409);
    expect(calls() - before).toBe(1);
  });
});
