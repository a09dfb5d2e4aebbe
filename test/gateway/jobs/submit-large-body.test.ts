// Bodies above 256 KB through the front door: scanned as they flow, with the verdicts of small ones, and never half relayed.
import { describe, expect, it } from "vitest";
import { expectProblem } from "../../support/problems.ts";
import { chunked, FakeUpstream, json, model, upstreamKey, watchCanary } from "./fake-upstream.ts";

watchCanary();

const filler = "x".repeat(300 * 1024);
const input = (more = "") => `"input":{"prompt":"a lighthouse","image":"${filler}"${more}}`;
const ok = () => json({ id: "job-1", status: "IN_QUEUE" });
const hook = "https://hooks.example.org/done";

describe("a large body", () => {
  it.each([
    ["of stated length", (text: string) => text],
    ["chunked", chunked],
  ])("%s is relayed whole, with the gateway's webhook and key", async (_name, carried) => {
    const upstream = new FakeUpstream(ok);
    const response = await upstream.submit("run", carried(`{${input()},"policy":{"ttl":60000},"own":[1]}`));
    expect(await response.json()).toMatchObject({ status: "IN_QUEUE", id: expect.stringMatching(/^job-1\./) });
    const [seen] = upstream.seen;
    expect(JSON.parse(seen?.body ?? "")).toEqual({
      input: { prompt: "a lighthouse", image: filler },
      policy: { ttl: 60_000 },
      own: [1],
      webhook: expect.stringMatching(/^https:\/\/gateway\.example\.com\/hooks\/[0-9a-f]{64}\./),
    });
    expect(seen?.headers.get("Authorization")).toBe(`Bearer ${upstreamKey}`);
    expect(await upstream.jobs()).toMatchObject([{ status: "IN_QUEUE" }]);
  });

  it.each([
    ["run", 10],
    ["runsync", 20],
  ])(
    "of just the limit of %s is relayed as it came, since a webhook would make it too long",
    async (operation, mebibytes) => {
      const upstream = new FakeUpstream(ok);
      const [start, end] = ['{"input":{"prompt":"a lighthouse","image":"', '"}}'];
      const body = `${start}${"x".repeat(mebibytes * 1024 * 1024 - start.length - end.length)}${end}`;
      const stated = { "Content-Length": String(body.length) };
      expect((await upstream.submit(operation, body, stated)).status).toBe(200);
      expect(upstream.seen[0]?.body === body).toBe(true);
    },
  );

  it.each([
    ["before the input", `{"webhook":"${hook}",${input()}}`],
    ["after the input", `{${input()},"webhook":"${hook}"}`],
    ["in another spelling", `{"\\u0077ebhoo\\u006b":"${hook}",${input()}}`],
    ["twice", `{"webhook":"https://first.example.org/",${input()},"webhook":"${hook}"}`],
  ])("keeps a client's webhook %s from the upstream", async (_name, body) => {
    const upstream = new FakeUpstream(ok);
    expect((await upstream.submit("run", body)).status).toBe(200);
    const sent = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
    expect(sent.webhook).toContain("/hooks/");
    expect(Object.entries(sent).filter(([name, value]) => name === "webhook" && value === hook)).toEqual([]);
  });

  it.each([
    ["null", `"webhook":null,"policy":null,"s3Config":null`],
    ["empty, or null within", `"webhook":"","policy":{"ttl":null,"lowPriority":null},"s3Config":{"accessId":null}`],
  ])("may have its optional members as %s, as a small one may", async (_name, members) => {
    for (const body of [`{${input()},${members}}`, `{"input":{"prompt":"a lighthouse"},${members}}`]) {
      const upstream = new FakeUpstream(ok);
      expect((await upstream.submit("run", body)).status).toBe(200);
      expect(JSON.parse(upstream.seen[0]?.body ?? "{}")).toMatchObject({ webhook: expect.stringContaining("/hooks/") });
    }
  });

  it.each(["run", "runsync", "estimate"])("to %s that is compressed is refused", async (path) => {
    for (const body of ["small", input()]) {
      const upstream = new FakeUpstream(ok);
      const response = await upstream.submit(path, body, { "Content-Encoding": "gzip" });
      expect([response.status, upstream.seen.length]).toEqual([415, 0]);
      expect(await response.text()).toContain("UNSUPPORTED_TYPE");
    }
  });

  it("leaves a webhook inside the input alone", async () => {
    const upstream = new FakeUpstream(ok);
    await upstream.submit("run", `{${input(`,"webhook":"mine"`)}}`);
    expect(JSON.parse(upstream.seen[0]?.body ?? "{}")).toMatchObject({ input: { webhook: "mine" } });
  });

  it.each([
    ["breaks its JSON at the end", `{${input()},}`, "INVALID_JSON"],
    ["ends too early", `{${input()}`, "INVALID_JSON"],
    ["has no input", `{"image":"${filler}"}`, "INVALID_REQUEST"],
    ["has a list for an input", `{"input":[1],"image":"${filler}"}`, "INVALID_REQUEST"],
    ["has a policy out of range", `{${input()},"policy":{"ttl":1}}`, "INVALID_REQUEST"],
    ["has a prompt that is none", `{"input":{"image":"${filler}","prompt":7}}`, "INVALID_REQUEST"],
    ["wants its notice at an address", `{${input()},"webhook":"https://10.0.0.1/"}`, "INVALID_REQUEST"],
    ["has a byte order mark", `\ufeff{${input()}}`, "INVALID_JSON"],
  ] as const)("that %s is refused, never taken whole, and owes nothing", async (_name, body, code) => {
    let whole: boolean | undefined;
    const upstream = new FakeUpstream(ok);
    upstream.answer = (seen) => {
      whole = seen.body.endsWith("}");
      return ok();
    };
    await expectProblem(await upstream.submit("run", body), code);
    expect(whole).not.toBe(true);
    expect(await upstream.jobs()).toEqual([]);
  });

  it.each([
    ["run", 10],
    ["runsync", 20],
  ])("beyond the limit of %s is refused, by its stated length at once", async (operation, mebibytes) => {
    const upstream = new FakeUpstream(ok);
    const body = `{"input":{"prompt":"${"x".repeat(mebibytes * 1024 * 1024)}"}}`;
    await expectProblem(await upstream.submit(operation, body), "PAYLOAD_TOO_LARGE");
    expect(upstream.seen).toEqual([]);
    await expectProblem(await upstream.submit(operation, chunked(body)), "PAYLOAD_TOO_LARGE");
    expect(await upstream.jobs()).toEqual([]);
  });

  it("is refused for the length that it states, before it is read", async () => {
    const upstream = new FakeUpstream(ok);
    const unread = new ReadableStream({ type: "bytes", pull: () => Promise.reject(new Error("was read")) });
    const stated = { "Content-Length": String(10 * 1024 * 1024 + 1) };
    await expectProblem(await upstream.submit("run", unread, stated), "PAYLOAD_TOO_LARGE");
  });

  it("that the upstream refuses owes nothing either", async () => {
    const upstream = new FakeUpstream(() => json({ error: "no" }, 400));
    await expectProblem(await upstream.submit("run", `{${input()}}`), "UPSTREAM_INVALID");
    expect(await upstream.jobs()).toEqual([]);
    expect(upstream.seen[0]?.path).toBe(`/v2/${model}/run`);
  });
});
