// Attacks on what is reserved: amounts below zero or beyond numbers, and what a reservation does not look at.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacked, image, settlesWithinMs, text, usdAToken } from "../../e2e/support/attacked.ts";
import { send } from "../../e2e/support/scripted-upstream.ts";
import { eventually } from "../../support/serve-eventually.ts";

const messages = [{ role: "user", content: "Say something." }];
const completion = {
  id: "chat-1",
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "Something." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 9, completion_tokens: 100_000, total_tokens: 100_009 },
};
/** Meters tell the app's budget once a minute. */
const toldWithinMs = 90_000;

let attacked: Attacked;
beforeAll(async () => {
  attacked = await Attacked.start();
  attacked.upstream.scripts.set(text, ({ operation }, response) => {
    if (!operation.startsWith("openai/")) return false;
    send(response, 200, completion);
    return true;
  });
  attacked.upstream.scripts.set(image, ({ operation }, response) => {
    if (!operation.startsWith("openai/")) return false;
    send(response, 404, { error: { message: "no text model" } });
    return true;
  });
});
afterAll(() => attacked.stop());

describe("attack C1: a picture of negative width through openai/", () => {
  const pictures = `/v2/${image}/openai/v1/images/generations`;
  const amounts = [
    { width: -1_000_000, height: 1_000_000 },
    { width: 1e200, height: -1e200 },
    { width: -9e9, height: 1e3 },
    { width: 0, height: 0 },
    { width: 0.5, height: 0.5 },
  ];

  it.each(amounts)("of $width × $height is refused as a route that is not there, and nothing is held", async (size) => {
    const user = await attacked.user(`c1-${size.width}`, [{ unit: "usd", limit: 0.25, per: "day" }]);
    const before = attacked.upstream.submitted(image).length;
    const answer = await user.ask("POST", pictures, size);
    expect(answer.status, answer.text).toBe(404);
    expect(answer.body["error"]).toMatchObject({ message: expect.any(String), code: expect.any(String) });
    expect(attacked.upstream.submitted(image)).toHaveLength(before);
    expect(await user.money()).toEqual({ usd: 0, assumedUsd: 0, reservedUsd: 0 });
    const limits = (await user.usage()).limits.map(({ used, reserved }) => ({ used, reserved }));
    expect(limits).toEqual([{ used: 0, reserved: 0 }]);
  });

  it("locks out neither the neighbours nor the app", { timeout: 2 * toldWithinMs }, async () => {
    await attacked.limitVisitors([{ unit: "usd", limit: 0.25, per: "day" }]);
    await attacked.operate("PUT", "/admin/budget", { dayUsd: 50, monthUsd: 100 });
    const mallory = await attacked.visitor("203.0.113.7");
    for (const size of amounts) await mallory.ask("POST", pictures, size);
    const neighbour = await attacked.visitor("203.0.113.7");
    const { job } = await neighbour.start(image, { prompt: "a lighthouse" });
    job.state = { status: "COMPLETED", output: { cost: 0.01 } };
    await attacked.notify(job);
    const usd = await eventually("the app's spending", toldWithinMs, async () => {
      const { day } = (await attacked.operate("GET", "/admin/budget")) as { day: { usedUsd: number } };
      return day.usedUsd >= 0.01 && day.usedUsd;
    });
    expect(usd).toBeLessThan(0.02);
    const other = await attacked.user("somebody-else");
    expect((await other.run(image, { prompt: "a lighthouse" })).status).toBe(200);
    await attacked.operate("PUT", "/admin/budget", { dayUsd: null, monthUsd: null });
  });

  it.each([
    ["max_tokens", -5],
    ["max_tokens", 1e300],
    ["n", -3],
    ["n", 0.5],
  ])("a chat with %s = %d is refused by that name, and nothing is held", async (param, value) => {
    const user = await attacked.user(`c1-chat-${param}-${value}`);
    const before = attacked.upstream.submitted(text).length;
    const answer = await user.chat({ messages, [param]: value });
    expect(answer.status, answer.text).toBe(400);
    expect(answer.body["error"]).toMatchObject({ param });
    expect(attacked.upstream.submitted(text)).toHaveLength(before);
    expect(await user.money()).toEqual({ usd: 0, assumedUsd: 0, reservedUsd: 0 });
  });
});

describe("attack H5: what the reservation does not look at", () => {
  const dear = [
    ["max_completion_tokens", { max_tokens: 1, max_completion_tokens: 131_072 }],
    ["n", { max_tokens: 1000, n: 128 }],
    ["best_of", { max_tokens: 1000, best_of: 128 }],
    ["no max_tokens at all", {}],
  ] as const;

  it.each(dear)("openai/ with %s stays within the day's limit", async (_, body) => {
    const user = await attacked.user(`h5-${Object.keys(body).join("-")}`, [{ unit: "usd", limit: 0.05, per: "day" }]);
    const answers = await Promise.all([1, 2, 3].map(() => user.chat({ messages, ...body })));
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 429]);
    expect(await user.money()).toEqual({ usd: 0, assumedUsd: 0, reservedUsd: 0 });
  });

  it.each(dear)("openai/ with %s stays within the token's maxCostUsd", async (_, body) => {
    const user = await attacked.user(`h5-max-${Object.keys(body).join("-")}`, [], 0.05);
    const answers = await Promise.all([1, 2, 3].map(() => user.chat({ messages, ...body })));
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 429]);
  });

  /** Above what one picture costs, and below what the dearest one does. */
  const onePicture = [{ unit: "usd", limit: 0.005, per: "day" }] as const;
  const pictures = [{ num_images: 100 }, { n: 100 }, { num_outputs: 100 }];
  it.each(pictures)("/run of a picture with %o is refused, or reserved as what it asks for", async (more) => {
    const user = await attacked.user(`h5-${Object.keys(more).join()}`, onePicture);
    const before = attacked.upstream.submitted(image).length;
    const answer = await user.run(image, { prompt: "a lighthouse", ...more });
    expect([400, 429], answer.text).toContain(answer.status);
    expect(attacked.upstream.submitted(image)).toHaveLength(before);
    expect((await user.money()).reservedUsd).toBe(0);
    expect((await user.run(image, { prompt: "a lighthouse" })).status).toBe(200);
  });

  it("/run of a text with sampling_params.n is refused, or reserved as what it asks for", async () => {
    const user = await attacked.user("h5-sampling", [{ unit: "usd", limit: 0.05, per: "day" }]);
    const answer = await user.run(text, { messages, sampling_params: { max_tokens: 1000, n: 100 } });
    expect([400, 429], answer.text).toContain(answer.status);
    expect((await user.money()).reservedUsd).toBe(0);
  });

  it("a rule of 0 USD lets no picture pass through openai/", async () => {
    const user = await attacked.user("h5-zero", [{ unit: "usd", limit: 0, per: "day" }]);
    const path = `/v2/${image}/openai/v1/images/generations`;
    const answer = await user.ask("POST", path, { width: 0, height: 0, size: "1536x1536", n: 10 });
    expect([404, 429], answer.text).toContain(answer.status);
    expect(attacked.upstream.submitted(image).filter(({ operation }) => operation.startsWith("openai"))).toEqual([]);
  });

  it("a stream that says no usage is charged by what it said, and as assumed", async () => {
    const user = await attacked.user("h5-stream");
    const words = "lorem ".repeat(20_000);
    const event = JSON.stringify({ id: "chat-1", choices: [{ delta: { content: words } }] });
    const usual = attacked.upstream.scripts.get(text);
    attacked.upstream.scripts.set(text, (_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.end(`data: ${event}\n\ndata: [DONE]\n\n`);
      return true;
    });
    const answer = await user.chat({ messages, max_tokens: 100_000, stream: true });
    expect(answer.text).toContain("lorem");
    if (usual) attacked.upstream.scripts.set(text, usual);
    const { usd, assumedUsd } = await eventually("a charge", settlesWithinMs, async () => {
      const money = await user.money();
      return money.usd > 0 && money;
    });
    expect(usd).toBeGreaterThanOrEqual((words.length / 4) * usdAToken);
    expect(assumedUsd).toBe(usd);
    const sent = JSON.parse(attacked.upstream.submitted(text).at(-1)?.text ?? "{}") as object;
    expect(sent).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });
});
