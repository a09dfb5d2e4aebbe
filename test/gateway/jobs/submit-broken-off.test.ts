// An upstream that is gone in the middle of an upload: it had no whole request, so it made no job.
import { expect, it, vi } from "vitest";
import { FakeUpstream, json, model, watchCanary } from "./fake-upstream.ts";

watchCanary();

const filler = "x".repeat(1024 * 1024);
const run = ["run", `/v2/${model}/run`, `{"input":{"prompt":"a lighthouse","image":"${filler}"}}`] as const;
const messages = [{ role: "user", content: "hi" }];
const chat = ["chat", "/v2/gpt-oss-120b/openai/v1/chat/completions", JSON.stringify({ messages, filler })] as const;
const resets = (): Response => {
  throw new Error("Network connection lost.");
};
const fails = () => json({ error: "out of memory" }, 500);

it.each([
  ["resets", ...run, resets],
  ["fails", ...run, fails],
  ["resets", ...chat, resets],
  ["fails", ...chat, fails],
])("that %s is owed nothing for a %s, whose key is free", async (_how, _name, path, body, end) => {
  const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
  const works = vi.mocked(fetch).getMockImplementation();
  vi.mocked(fetch).mockImplementationOnce(async (input, init) => {
    const reader = new Request(input, init).body?.getReader();
    await reader?.read();
    await reader?.cancel("gone");
    return end();
  });
  const headers = { "Idempotency-Key": "once" };
  expect((await upstream.call("POST", path, { body, headers })).status).toBe(502);
  expect(await upstream.jobs()).toEqual([]);
  if (works) vi.mocked(fetch).mockImplementation(works);
  expect((await upstream.call("POST", path, { body, headers })).status).toBe(200);
});

it.each([run, chat])("a %s is read no further where nobody takes it", async (_name, path, body) => {
  const upstream = new FakeUpstream(() => json({ error: "bad gateway" }, 502));
  const [, , called] = path.split("/");
  for (const user of ["ada", "bob", "eve", "mallory", "zed"]) {
    await upstream.call("GET", `/v2/${called}/health`, { key: await upstream.token(user) });
  }
  const cancel = vi.fn();
  const bytes = new TextEncoder().encode(body);
  const begun = new ReadableStream({ start: (client) => client.enqueue(bytes), cancel, type: "bytes" });
  const refused = await upstream.call("POST", path, { body: begun });
  expect(await refused.json()).toMatchObject(
    path === run[1] ? { code: "UPSTREAM_DOWN" } : { error: { code: "UPSTREAM_DOWN" } },
  );
  expect(cancel).toHaveBeenCalledOnce();
  expect(await upstream.jobs()).toEqual([]);
});

it.each([run, chat])(
  "a %s that was sent whole before the upstream was gone may have been taken",
  async (_name, path, body) => {
    const upstream = new FakeUpstream(resets);
    expect((await upstream.call("POST", path, { body })).status).toBe(502);
    expect(await upstream.jobs()).toHaveLength(1);
  },
);
