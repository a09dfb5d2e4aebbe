// The client's webhook: once a job, signed so that the standard's own check accepts it, tried three times at most.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { signingKeysOf } from "../../../src/gateway/signing.ts";
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

async function finished(webhook: string | undefined = url, body = '{"status":"COMPLETED"}'): Promise<string> {
  const job = request({ webhook });
  await meter().admit(job);
  await meter().settle(ending(job.admission));
  await meter().notify(job.admission, body);
  return job.admission;
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
    expect(sent[0]?.body).toBe("{}");
  });

  it("carries a signature that its secret verifies", async () => {
    const body = JSON.stringify({ output: "é€😀".repeat(700_000) });
    const id = await finished(url, body);
    await runDurableObjectAlarm(stub());
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
    expect(text).toBe(body);
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

  it("is not sent a fourth time where the object died at the third", async () => {
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
    expect(sent[0]?.body).toBe('{"a":1}');
  });
});
