// A link lives until the moment that was fixed at its job's end, however late anybody looks.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { kept, model, origin, painted, Studio, World } from "./studio.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const dayMs = 24 * 60 * minuteMs;
const weekMs = 7 * dayMs;

let world: World;
let start: number;
beforeEach(() => {
  world = new World();
  start = Math.floor(Date.now() / 1000) * 1000;
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** Whatever asks where a link leads fails the test. */
const storage = new Proxy({}, { get: () => () => expect.unreachable("storage was asked") });
const silent = { IMAGES: storage, JOB_MEDIA: storage, SHARED_REQUEST: storage };

describe("seven days", () => {
  it.each([
    ["6 d 23 h", weekMs - 60 * minuteMs, 200],
    ["7 d less a second", weekMs - secondMs, 200],
    ["7 d", weekMs, 410],
    ["7 d 1 s", weekMs + secondMs, 410],
    ["a year", 365 * dayMs, 410],
  ])("after %s", async (_, laterMs, status) => {
    const studio = new Studio();
    const { path, expiresAt } = await studio.link(await studio.token("ada"));
    expect(Date.parse(expiresAt)).toBe(start + weekMs);
    vi.setSystemTime(start + laterMs);
    const response = await (status === 200 ? studio : new Studio(silent)).ask(path, undefined);
    expect(response.status).toBe(status);
    if (status === 200) {
      const left = (weekMs - laterMs) / 1000;
      expect(response.headers.get("Cache-Control")).toBe(`public, max-age=${left}, immutable`);
      await response.arrayBuffer();
      return;
    }
    const body = await expectProblem(response, "GONE");
    expect(body["detail"]).toContain(expiresAt);
  });

  it("over, a link is deleted by nobody, and costs no call of storage", async () => {
    const { path } = await new Studio().link(await new Studio().token("ada"));
    vi.setSystemTime(start + weekMs);
    const late = new Studio(silent);
    await expectProblem(await late.ask(path, await late.token("ada"), "DELETE"), "GONE");
  });

  it.each([
    [2000, 3000],
    [1999.75, 3000.5],
  ])(
    "counts from the job's end after %d and %d ms, not from when somebody looked",
    async (delayTime, executionTime) => {
      const studio = new Studio();
      const token = await studio.token("ada");
      world.submitted = () => painted("https://cdn.example.net/a.png", { delayTime, executionTime });
      const { id } = await (await studio.paint(token, { operation: "run" })).json<{ id: string }>();
      vi.setSystemTime(start + 20 * minuteMs);
      const late = await (await studio.ask(`/v2/${model}/status/${id}`, token)).json<{
        output: { image_url: string; expires_at: string };
      }>();
      expect(Date.parse(late.output.expires_at)).toBe(start + 5000 + weekMs);
      expect(await kept("media/")).toMatchObject([{ expiresAt: start + 5000 + weekMs }]);
      expect((await studio.ask(late.output.image_url.replace(origin, ""), undefined)).status).toBe(200);
    },
  );

  it("is fixed by the first look: a later one, in another isolate, moves nothing", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    const first = await studio.link(token);
    vi.setSystemTime(start + 10 * minuteMs);
    const again = await new Studio().ask(`/v2/${model}/status/${first.id}`, token);
    const { output } = await again.json<{ output: { image_url: string; expires_at: string } }>();
    expect(output).toMatchObject({ image_url: origin + first.path, expires_at: first.expiresAt });
    expect(await kept("media/")).toHaveLength(1);
  });
});

describe("a URL that ends sooner", () => {
  const stamp = (ms: number) => new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, "");
  it.each<[string, (end: number) => string]>([
    ["S3", (end) => `https://b.s3.amazonaws.com/a.png?X-Amz-Date=${stamp(end - 3600_000)}&X-Amz-Expires=3600`],
    ["Google", (end) => `https://storage.googleapis.com/a.png?X-Goog-Date=${stamp(end - 60_000)}&X-Goog-Expires=60`],
    ["Azure", (end) => `https://b.blob.core.windows.net/a.png?se=${encodeURIComponent(new Date(end).toISOString())}`],
    ["Expires", (end) => `https://cdn.example.net/a.png?Expires=${end / 1000}&Signature=x`],
  ])("ends the link: %s", async (_, urlUntil) => {
    const end = start + 2 * dayMs;
    world.submitted = () => painted(urlUntil(end));
    const studio = new Studio();
    const { path, expiresAt } = await studio.link(await studio.token("ada"));
    expect(Date.parse(expiresAt)).toBe(end);
    expect(await kept("media/")).toMatchObject([{ expiresAt: end }]);
    vi.setSystemTime(end - 1);
    expect((await studio.ask(path, undefined)).status).toBe(200);
    vi.setSystemTime(end);
    await expectProblem(await studio.ask(path, undefined), "GONE");
  });

  it("ends it on a whole millisecond, whatever fraction it names", async () => {
    world.submitted = () => painted(`https://cdn.example.net/a.png?X-Amz-Date=${stamp(start)}&X-Amz-Expires=3600.0005`);
    const studio = new Studio();
    const { path, expiresAt } = await studio.link(await studio.token("ada"));
    expect(Date.parse(expiresAt)).toBe(start + 60 * minuteMs);
    expect((await studio.ask(path, undefined)).status).toBe(200);
  });

  it("is kept for the minute that KV demands, and gone when it says so", async () => {
    const end = start + 10 * secondMs;
    world.submitted = () => painted(`https://cdn.example.net/a.png?Expires=${end / 1000}`);
    const studio = new Studio();
    const { path } = await studio.link(await studio.token("ada"));
    const [entry] = await kept("media/");
    expect(entry?.expiresAt).toBeGreaterThanOrEqual(start + minuteMs);
    expect(entry?.expiresAt).toBeLessThan(start + 2 * minuteMs);
    expect((await studio.ask(path, undefined)).status).toBe(200);
    vi.setSystemTime(end);
    await expectProblem(await studio.ask(path, undefined), "GONE");
  });

  it.each(["Expires=soon&X-Amz-Expires=-5&se=never", "X-Amz-Date=20261301T000000Z&X-Amz-Expires=60"])(
    "says nothing where it cannot be read: %s",
    async (query) => {
      world.submitted = () => painted(`https://cdn.example.net/a.png?${query}`);
      const studio = new Studio();
      const { expiresAt } = await studio.link(await studio.token("ada"));
      expect(Date.parse(expiresAt)).toBe(start + weekMs);
    },
  );
});
