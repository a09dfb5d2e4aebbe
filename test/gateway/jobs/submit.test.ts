// run and runsync: what is sent on, and to which models.
import { describe, expect, it } from "vitest";
import { send } from "../../support/callers.ts";
import { expectProblem } from "../../support/problems.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, model, prompt, upstreamKey, watchCanary } from "./fake-upstream.ts";

watchCanary();

it("sends what the upstream needs, and nothing of the caller's", async () => {
  const upstream = new FakeUpstream(() => json({ id: "a", status: "IN_QUEUE" }));
  await upstream.submit("run", prompt, { Cookie: "a=b", "X-Forwarded-For": "1.2.3.4", "X-Own": "mine" });
  const [seen] = upstream.seen;
  expect([...(seen?.headers.keys() ?? [])].sort()).toEqual(["accept", "authorization", "content-type"]);
  expect(seen?.headers.get("Authorization")).toBe(`Bearer ${upstreamKey}`);
});

describe.each(["run", "runsync"])("a webhook in a small body of %s", (operation) => {
  it.each([
    "https://10.0.0.1/",
    "https://167772161/",
    "https://[::1]/",
    "https://metadata.google.internal/",
    "https://printer.lan/",
    "https://hooks.example.org:8443/",
    "http://hooks.example.org/",
  ])("is refused at the door, and nothing is sent on or owed: %s", async (webhook) => {
    const upstream = new FakeUpstream(() => json({ id: "a", status: "IN_QUEUE" }));
    const { detail } = await expectProblem(await upstream.submit(operation, { ...prompt, webhook }), "INVALID_REQUEST");
    expect(detail).toMatch(/^webhook: the URL (is not|names a)/);
    expect(upstream.seen).toEqual([]);
    expect(await upstream.jobs()).toEqual([]);
  });

  it("is taken where it is on a public host", async () => {
    const upstream = new FakeUpstream(() => json({ id: "a", status: "IN_QUEUE" }));
    const webhook = "https://hooks.example.org/done";
    expect((await upstream.submit(operation, { ...prompt, webhook })).status).toBe(200);
    expect(await upstream.jobs()).toHaveLength(1);
  });
});

describe("what the operator switches", () => {
  const put = (upstream: FakeUpstream, name: string, value: object) =>
    send(upstream.env, "PUT", `/admin/models/${name}`, { key: testSettings.ADMIN_TOKEN, body: value });

  it("serves no model that is off, and again one that is on", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    await put(upstream, model, { enabled: false });
    await expectProblem(await upstream.submit(), "MODEL_DISABLED");
    await put(upstream, model, { enabled: true });
    expect((await upstream.submit()).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
  });

  it("opens an endpoint that the catalog does not know, at the stated price", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    const run = () => upstream.call("POST", "/v2/own-endpoint/run", { body: prompt });
    await expectProblem(await run(), "MODEL_NOT_FOUND");
    await put(upstream, "own-endpoint", { passthrough: true, maxUsd: 0.07 });
    expect((await run()).status).toBe(200);
    expect(await upstream.jobs()).toMatchObject([{ model: "own-endpoint", reservedUsd: 0.07 }]);
  });
});
