// The upstream's notice of an end, which is asked for, and the client's own: once, in any order, signed on the way out.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { signingKeysOf } from "../../../src/gateway/identity/signing.ts";
import { configOf } from "../../support/callers.ts";
import { expectProblem } from "../../support/problems.ts";
import { chunked, FakeUpstream, json, model, type Seen, watchCanary } from "./fake-upstream.ts";

watchCanary();

const target = "https://hooks.example.org/done";
const filler = "x".repeat(300 * 1024);
const ended = (id: string) => ({ id, status: "COMPLETED", output: { cost: 0.002, note: "made" }, executionTime: 5 });

/** A job was submitted; what it was given as its webhook is where the upstream tells of its end. */
async function submitted(body: object, ref = "job-1") {
  const truth = { answer: () => json(ended(ref)) };
  const upstream = new FakeUpstream(({ url, path }) => {
    if (url.startsWith(target)) return new Response(null, { status: 204 });
    return path.includes("/status/") ? truth.answer() : json({ id: ref, status: "IN_QUEUE" });
  });
  const { id } = await (await upstream.submit("run", body)).json<{ id: string }>();
  const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
  const hook = new URL(webhook).pathname;
  const tell = (notice: unknown, path = hook) => upstream.call("POST", path, { body: notice });
  const meter = env.USER_METER.get(env.USER_METER.idFromString(hook.split("/")[2]?.split(".")[0] ?? ""));
  return { upstream, id, hook, tell, meter, truth };
}

describe("a client's webhook", () => {
  it.each([
    ["a small body", { input: { prompt: "x" }, webhook: target }, { input: { prompt: "x" } }],
    ["a large body, whose input is left out,", { input: { prompt: "x", image: filler }, webhook: target }, {}],
  ])("of %s is delivered once, signed, with the handle and without our URL", async (_name, body, told) => {
    const { upstream, id, tell, meter } = await submitted(body);
    expect((await tell({ ...ended("job-1"), input: {}, webhook: "ours" })).status).toBe(200);
    expect((await tell(ended("job-1"))).status).toBe(200);
    const delivered = await deliveredBy(upstream, meter);
    expect(delivered).toHaveLength(1);
    const { headers, body: text = "" } = delivered[0] ?? {};
    expect(JSON.parse(text)).toEqual({ ...ended("job-1"), id, ...told, webhook: target });
    expect(await isSigned(headers ?? new Headers(), text)).toBe(true);
    expect(await isSigned(headers ?? new Headers(), `${text} `)).toBe(false);
    expect(headers?.has("authorization")).toBe(false);
  });

  it("is delivered for an end that a poll saw first", async () => {
    const { upstream, id, meter } = await submitted({ input: { prompt: "x" }, webhook: target });
    const { answer } = upstream;
    upstream.answer = (seen, request) =>
      seen.path.includes("/status/") ? json(ended("job-1")) : answer(seen, request);
    await upstream.call("GET", `/v2/${model}/status/${id}`);
    const delivered = await deliveredBy(upstream, meter);
    const told = { ...ended("job-1"), id, input: { prompt: "x" }, webhook: target };
    expect(delivered.map(({ body }) => JSON.parse(body))).toEqual([told]);
  });
});

/** The alarm rings by itself too: whichever is first. */
async function deliveredBy(upstream: FakeUpstream, meter: DurableObjectStub): Promise<Seen[]> {
  const delivered = () => upstream.seen.filter(({ url }) => url === target);
  await runDurableObjectAlarm(meter);
  await vi.waitFor(() => expect(delivered()).not.toEqual([]), { timeout: 5_000 });
  return delivered();
}

/** As an app's backend does it: standardwebhooks.com over what `/tokens/webhook-secret` says. */
async function isSigned(headers: Headers, body: string): Promise<boolean> {
  const [secret = ""] = await signingKeysOf(configOf()).webhookSecrets();
  const raw = Uint8Array.from(atob(secret.replace("whsec_", "")), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const [, mac = ""] = (headers.get("webhook-signature") ?? "").split(" ")[0]?.split(",") ?? [];
  const said = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
  const bytes = Uint8Array.from(atob(mac), (character) => character.charCodeAt(0));
  return crypto.subtle.verify("HMAC", key, bytes, new TextEncoder().encode(said));
}

describe("the upstream's notice", () => {
  const body = { input: { prompt: "x" } };

  it("settles its job once, as the upstream says when it is asked", async () => {
    const { upstream, tell } = await submitted(body);
    await tell(ended("job-1"));
    await tell({ ...ended("job-1"), output: { cost: 0.9 } });
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.002 }]);
  });

  it("settles nothing where the upstream says nothing final, and one that comes late changes nothing", async () => {
    const { upstream, tell, truth } = await submitted(body);
    truth.answer = () => json({ id: "job-1", status: "IN_PROGRESS" });
    await tell({ id: "job-1", status: "COMPLETED" });
    expect(await upstream.jobs()).toMatchObject([{ costUsd: null }]);
    truth.answer = () => json({ id: "job-1", status: "FAILED" });
    await tell({ id: "job-1", status: "COMPLETED" });
    truth.answer = () => json({ id: "job-1", status: "IN_PROGRESS" });
    await tell({ id: "job-1", status: "IN_PROGRESS" });
    expect(await upstream.jobs()).toMatchObject([{ status: "FAILED", costUsd: 0 }]);
  });

  it.each([
    ["another job's id", { ...ended("job-2") }, "JOB_NOT_FOUND"],
    ["no id", { status: "COMPLETED" }, "INVALID_REQUEST"],
    ["an id that would lead elsewhere", { ...ended("../../v1/pods") }, "INVALID_REQUEST"],
    ["no JSON", "{", "INVALID_JSON"],
    ["a list", [], "INVALID_REQUEST"],
  ] as const)("with %s is refused", async (_name, notice, code) => {
    const { upstream, tell } = await submitted(body);
    await expectProblem(await tell(notice), code);
    expect(await upstream.jobs()).toMatchObject([{ costUsd: null }]);
  });

  describe("that is too large to hold", () => {
    const large = (id: string) => ({ ...ended(id), input: { prompt: "x", image: filler } });
    async function largeJob(status: () => Response) {
      const job = await submitted({ ...body, webhook: target });
      job.truth.answer = status;
      return job;
    }

    it("settles its job, and the client's webhook gets what the upstream says of it", async () => {
      const { upstream, id, tell, meter } = await largeJob(() => json(ended("job-1")));
      expect((await tell(large("job-1"))).status).toBe(200);
      expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.002 }]);
      const delivered = await deliveredBy(upstream, meter);
      const told = { ...ended("job-1"), id, webhook: target };
      expect(delivered.map((seen) => JSON.parse(seen.body))).toMatchObject([told]);
    });

    it.each([
      ["does not know it any more", () => json({ error: "job not found" }, 404)],
      ["has not heard of its end", () => json({ id: "job-1", status: "IN_PROGRESS" })],
    ])("is not believed where the upstream %s", async (_name, status) => {
      const { upstream, tell } = await largeJob(status);
      expect((await tell(large("job-1"))).status).toBe(200);
      expect(await upstream.jobs()).toMatchObject([{ costUsd: null }]);
    });

    it("is told without an output above 4 MB", async () => {
      const output = { note: "x".repeat(4 * 1024 * 1024), cost: 0.002 };
      const { upstream, id, tell, meter } = await largeJob(() => json({ ...ended("job-1"), output }));
      await tell({ ...ended("job-1"), output });
      expect(await upstream.jobs()).toMatchObject([{ costUsd: 0.002 }]);
      const { output: _, ...others } = ended("job-1");
      expect((await deliveredBy(upstream, meter)).map((seen) => JSON.parse(seen.body))).toMatchObject([
        { ...others, id, webhook: target },
      ]);
    });

    it("keeps the media that it tells of", async () => {
      const output = { image_url: "https://media.example.net/a.png", cost: 0.002 };
      const { upstream, tell, meter } = await largeJob(() => json({ ...ended("job-1"), output }));
      await tell({ ...large("job-1"), output });
      const [seen] = await deliveredBy(upstream, meter);
      expect(JSON.parse(seen?.body ?? "")).toMatchObject({
        output: { image_url: expect.stringContaining("https://gateway.example.com/images/") },
      });
      const gallery = await (await upstream.call("GET", "/images")).json<{ images: unknown[] }>();
      expect(gallery.images).toHaveLength(1);
    });

    it.each([
      ["with another job's id", JSON.stringify(large("job-2")), "JOB_NOT_FOUND"],
      ["without an id", JSON.stringify({ ...large("job-1"), id: undefined }), "INVALID_REQUEST"],
      ["that is no JSON", `${JSON.stringify(large("job-1"))}}`, "INVALID_JSON"],
      ["that ends too early", JSON.stringify(large("job-1")).slice(0, -1), "INVALID_JSON"],
      ["beyond any answer", chunked(`"${"x".repeat(48 * 1024 * 1024)}"`), "PAYLOAD_TOO_LARGE"],
    ] as const)("%s is refused", async (_name, notice, code) => {
      const { upstream, tell } = await largeJob(() => json(ended("job-1")));
      await expectProblem(await tell(notice), code);
      expect(await upstream.jobs()).toMatchObject([{ costUsd: null }]);
    });
  });

  it("on a path that is not its own is refused", async () => {
    const { hook, tell } = await submitted(body);
    const other = await submitted(body, "job-1");
    const [meter = "", admission = "", mac = ""] = hook.replace("/hooks/", "").split(".");
    const [, , otherMac = ""] = other.hook.split(".");
    for (const path of [
      `${meter}.${admission}.${otherMac}`,
      `${meter}.${admission}.${mac.slice(1)}0`,
      `${"0".repeat(64)}.${admission}.${mac}`,
      `${meter}.${admission}`,
      "nonsense",
    ]) {
      await expectProblem(await tell(ended("job-1"), `/hooks/${path}`), "NOT_FOUND");
    }
  });
});
