// `POST /v2/:model/estimate`: what the meter would reserve for the same body, and nothing else happens.
import { describe, expect, it } from "vitest";
import { documented } from "../../models/documented.ts";
import { smallest } from "../../models/requests.ts";
import { expectProblem } from "../../support/problems.ts";
import { chunked, FakeUpstream, json, mintToken, model, prompt, watchCanary } from "./fake-upstream.ts";

watchCanary();

const ok = () => json({ id: "job-1", status: "IN_QUEUE" });
const filler = "x".repeat(300 * 1024);

describe("an estimate", () => {
  it.each(documented.map((one) => [one.id, smallest(one)]))("is what the meter reserves: %s", async (id, input) => {
    const upstream = new FakeUpstream(ok);
    const post = (operation: string) => upstream.call("POST", `/v2/${id}/${operation}`, { body: { input } });
    const estimated = await (await post("estimate")).json();
    expect(await upstream.jobs()).toEqual([]);
    expect(upstream.seen).toEqual([]);
    expect((await post("run")).status).toBe(200);
    const [job] = await upstream.jobs();
    expect(estimated).toEqual({ model: id, usd: job?.reservedUsd });
  });

  it.each([
    ["of stated length", (text: string) => text],
    ["chunked", chunked],
  ])("of a large body is read to its end, and goes by what that says: %s", async (_name, carried) => {
    const upstream = new FakeUpstream(ok);
    const body = `{"input":{"image":"${filler}","prompt":"a lighthouse","width":256,"height":512}}`;
    const estimated = await (await upstream.submit("estimate", carried(body))).json<{ usd: number }>();
    expect(upstream.seen).toEqual([]);
    await upstream.submit("run", carried(body));
    const [job, ...others] = await upstream.jobs();
    expect(others).toEqual([]);
    expect(estimated.usd).toBe(job?.reservedUsd);
  });

  it("of an endpoint that the operator opened is its price", async () => {
    const upstream = new FakeUpstream(ok);
    const key = String(upstream.env.ADMIN_TOKEN);
    const opened = { enabled: true, passthrough: true, maxUsd: 0.25 };
    await upstream.call("PUT", "/admin/models/opened", { key, body: opened });
    const estimated = await upstream.call("POST", "/v2/opened/estimate", { body: { input: { any: 1 } } });
    expect(await estimated.json()).toEqual({ model: "opened", usd: 0.25 });
  });

  it("counts as no request, and is given where there is no money left", async () => {
    const upstream = new FakeUpstream(ok);
    const rules = [
      { unit: "requests", limit: 1, per: "day" },
      { unit: "usd", limit: 0, per: "day" },
    ];
    const key = await mintToken(upstream.env, { user: "ada", plan: "unlimited", rules });
    const ask = () => upstream.call("POST", `/v2/${model}/estimate`, { key, body: prompt });
    for (const response of [await ask(), await ask()]) expect(response.status).toBe(200);
    const usage = await (await upstream.call("GET", "/usage", { key })).json();
    expect(usage).toMatchObject({ jobs: [], limits: [{ used: 0 }, { used: 0 }] });
  });
});

describe("an estimate is refused as a job would be", () => {
  it.each<[string, unknown, string]>([
    ["a wrong member", { input: { prompt: 7 } }, "input.prompt: Invalid input: expected string, received number"],
    ["no input", { prompt: "a lighthouse" }, "input: Invalid input: expected object, received undefined"],
    ["a webhook that may not be called", { ...prompt, webhook: "http://10.0.0.1/" }, "webhook: the URL"],
    [
      "a fault at the end of a large body",
      `{"input":{"prompt":"a","image":"${filler}"},"policy":{"ttl":1}}`,
      "policy.ttl",
    ],
  ])("%s", async (_name, body, sentence) => {
    const upstream = new FakeUpstream(ok);
    const refusals = [await upstream.submit("estimate", body), await upstream.submit("run", body)];
    const details: string[] = [];
    for (const response of refusals) details.push(String((await expectProblem(response, "INVALID_REQUEST"))["detail"]));
    expect(details[0]).toContain(sentence);
    expect(details[0]).toBe(details[1]);
  });

  it("broken JSON, too large a body, a token of other operations, an unknown model, and no token", async () => {
    const upstream = new FakeUpstream(ok);
    await expectProblem(await upstream.submit("estimate", "{"), "INVALID_JSON");
    await expectProblem(await upstream.submit("estimate", `{"input":{"image":"${filler}"`), "INVALID_JSON");
    const tooLong = { "Content-Length": String(11 * 1024 * 1024) };
    await expectProblem(await upstream.submit("estimate", "x".repeat(11 * 1024 * 1024), tooLong), "PAYLOAD_TOO_LARGE");
    const key = await mintToken(upstream.env, { user: "ada", operations: ["run"] });
    await expectProblem(
      await upstream.call("POST", `/v2/${model}/estimate`, { key, body: prompt }),
      "OPERATION_FORBIDDEN",
    );
    await expectProblem(await upstream.call("POST", "/v2/nowhere/estimate", { body: prompt }), "MODEL_NOT_FOUND");
    await expectProblem(
      await upstream.call("POST", `/v2/${model}/estimate`, { key: "", body: prompt }),
      "UNAUTHORIZED",
    );
  });
});
