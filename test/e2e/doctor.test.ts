// The doctor at a gateway that `npm start` serves: sound as it is, then with one fault after the other.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isHealthy, writeTable } from "../../src/cli/findings.ts";
import { eventually } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";
import { run } from "./support/checkout.ts";
import { doctored, doctoredThrough, moodyService, type Plant } from "./support/doctored.ts";
import { NpmStart } from "./support/npm-start.ts";

const objects = ["USER_METER", "BUDGET", "CONTROL", "JOB_MEDIA", "SHARED_REQUEST", "ENDPOINT_QUEUE", "ACCOUNT"];
const { ADMIN_TOKEN, APP_SECRET } = testSettings;

describe("the doctor at a sound deployment", () => {
  let server: NpmStart;
  beforeAll(async () => {
    // Events are told apart from their end only where a job takes its time.
    server = await NpmStart.start({ settings: { SAMPLE_DELAY_MS: "1500" } });
  });
  afterAll(() => server.stop());

  it("looks at what it can with no secret at all, and says what it left out", async () => {
    const { findings, of, faults } = await doctored(server.url, { adminToken: undefined, appSecret: undefined });
    expect(faults).toEqual([]);
    expect(of("bindings")).toMatchObject({ is: "left out", todo: "Set ADMIN_TOKEN to have them looked at." });
    expect(of("a user's token")).toMatchObject({ is: "ok", seen: expect.stringContaining("an anonymous session") });
    expect(writeTable(findings)).toMatch(/No fault was found\. 2 could not be looked at\.$/);
  });

  it.each([
    ["a wrong operator's token", { adminToken: `${ADMIN_TOKEN}x` }, ["operator"], /wrangler secret put ADMIN_TOKEN/],
    ["a wrong app's secret", { appSecret: `${APP_SECRET}x` }, ["a user's token"], /wrangler secret put APP_SECRET/],
    ["a token that is none", { token: "none.at.all" }, ["a user's token"], /not taken/],
  ])("names %s", async (_, wrong, faults, todo) => {
    const found = await doctored(server.url, wrong);
    expect(found.faults).toEqual(faults);
    expect(found.of(faults[0] ?? "")?.todo).toMatch(todo);
    expect(isHealthy(found.findings)).toBe(false);
  });

  it("names a KV that refuses", async () => {
    const { faults, of } = await doctoredThrough(server.url, async ({ url }, answer) => {
      if (url !== "/admin/selfcheck") return answer;
      const said = (await answer.json()) as { checks: { name: string }[] };
      const spent = { ok: false, problem: "KV put() limit exceeded for the day." };
      const checks = said.checks.map((check) => (check.name === "IMAGES" ? { ...check, ...spent } : check));
      return Response.json({ ...said, ok: false, checks });
    });
    expect(faults).toEqual(["IMAGES"]);
    expect(of("IMAGES")).toMatchObject({
      seen: expect.stringMatching(/^KV put\(\) limit/),
      todo: expect.stringMatching(/limit/),
    });
  });

  it("names a proxy that holds events back", async () => {
    const { faults, of } = await doctoredThrough(server.url, async ({ url }, answer) =>
      url?.includes("/events/") ? new Response(await answer.text(), answer) : answer,
    );
    expect(faults).toEqual(["events"]);
    expect(of("events")?.todo).toMatch(/all at once/);
  });

  it("names a file that no cache has", async () => {
    const { faults } = await doctoredThrough(server.url, ({ url }, answer) => {
      const headers = new Headers(answer.headers);
      if (url?.startsWith("/images/")) headers.set("X-Cache", "MISS");
      return new Response(answer.body, { status: answer.status, headers });
    });
    expect(faults).toEqual(["the same file"]);
  });

  it("takes the word of a cache before the Worker", async () => {
    const { faults } = await doctoredThrough(server.url, ({ url }, answer) => {
      const headers = new Headers(answer.headers);
      if (url?.startsWith("/images/")) headers.set("X-Cache", "MISS");
      if (url?.startsWith("/images/")) headers.set("CF-Cache-Status", "HIT");
      return new Response(answer.body, { status: answer.status, headers });
    });
    expect(faults).toEqual([]);
  });

  it("names where a key comes out, and not the key", async () => {
    const key = "key-of-the-real-service-0123456789abcdef";
    const plant: Plant = ({ url }, answer) => {
      const headers = new Headers(answer.headers);
      if (url === "/usage") headers.set("X-Debug", `Bearer ${key}`);
      return new Response(answer.body, { status: answer.status, headers });
    };
    const { findings, faults, of } = await doctoredThrough(server.url, plant, { upstreamKeys: ["none", key] });
    expect(faults).toEqual(["secrets in answers"]);
    expect(of("secrets in answers")?.seen).toContain("/usage");
    expect(writeTable(findings)).not.toContain(key);
  });

  it("says that something else answers there, or nobody", async () => {
    const page = await doctoredThrough(server.url, () => new Response("<p>welcome</p>"));
    expect(page.faults).toEqual(["reached"]);
    const gone = await doctored("http://127.0.0.1:9");
    expect(gone.faults).toEqual(["the connection"]);
    expect(writeTable(gone.findings)).toMatch(/Faults: 1\./);
    const doctor = run(server.folder, ["src/cli/doctor.ts", "http://127.0.0.1:9"]);
    expect(await doctor.ended, doctor.output()).toBe(1);
    expect(doctor.output()).toContain("Faults: 1.");
  });

  it("keeps what it found where the connection breaks off", async () => {
    const { faults, of } = await doctoredThrough(server.url, ({ url }, answer) =>
      url === "/usage" ? Promise.reject(new Error("broken")) : answer,
    );
    expect([faults, of("operator")?.is]).toEqual([["the connection"], "ok"]);
  });

  it("takes one address, and no option that it does not know", async () => {
    const wrong = [["not-a-url"], [server.url, server.url], [server.url, "--unknown"]];
    const doctors = wrong.map((args) => run(server.folder, ["src/cli/doctor.ts", ...args]));
    for (const doctor of doctors) {
      expect(await doctor.ended).toBe(2);
      expect(doctor.output()).toContain("npm run doctor -- URL");
    }
  });

  // Sixty jobs against the limit keep the server busy for seconds: these come last.
  it("finds no fault, line by line, in a process that says no secret", async () => {
    const doctor = run(server.folder, ["src/cli/doctor.ts", server.url, "--paid"], { ADMIN_TOKEN, APP_SECRET });
    const status = await doctor.ended;
    const output = doctor.output();
    expect(status, output).toBe(0);
    const lines = output.split("\n");
    const isOk = (what: string) => lines.some((line) => line.startsWith("ok ") && line.includes(` ${what} `));
    for (const what of ["reached", "operator", "IMAGES", "MEDIA", "FLOOD", ...objects, "upstream"]) {
      expect(isOk(what), `${what}\n${output}`).toBe(true);
    }
    expect(output).toMatch(/^ok +the same picture +HIT, \d+ ms$/m);
    expect(output).toMatch(/^ok +the same file +HIT, \d+ ms$/m);
    expect(output).toMatch(/^ok +events +the first after/m);
    expect(output).toMatch(/^ok +60 submits +50 were taken and 10 refused/m);
    expect(output).toMatch(/^warning +a foreign page +may call/m);
    expect(output).not.toMatch(/no page of another origin may call/);
    expect(output).toContain("No fault was found.");
    for (const secret of Object.values(testSettings).filter((value) => value.length > 20)) {
      expect(output).not.toContain(secret);
    }
  });

  it("names a limit that does not hold", async () => {
    const plant: Plant = ({ method }, answer) =>
      method === "POST" && answer.status === 429 ? Response.json({ id: "one-too-many", status: "IN_QUEUE" }) : answer;
    const { faults, of } = await doctoredThrough(server.url, plant, { paid: true });
    expect(faults).toEqual(["60 submits"]);
    expect(of("60 submits")?.seen).toMatch(/^60 were taken and 0 refused/);
  });
});

describe("the doctor at a deployment with a wrong setting or upstream", () => {
  let server: NpmStart;
  let service: Awaited<ReturnType<typeof moodyService>>;
  const own = {
    UPSTREAM_API_KEY: "key-of-the-real-service-0123456789abcdef",
    ALLOWED_ORIGINS: "https://app.example.com",
  };
  beforeAll(async () => {
    service = await moodyService();
    server = await NpmStart.start({ settings: { ...own, UPSTREAM_URL: service.url } });
  });
  afterAll(async () => {
    await server.stop();
    await service.close();
  });
  const edited = async (settings: Record<string, string>, isServed: () => Promise<boolean>) => {
    server.set({ ...own, UPSTREAM_URL: service.url, ...settings });
    await eventually("the edit", 30_000, isServed);
  };

  it.each([
    [401, /refused our key/, /wrangler secret put UPSTREAM_API_KEY/],
    [402, /wants to be paid/, /no credits/],
    [500, /answered 500/, /UPSTREAM_URL/],
  ])("names an upstream that answers %i", async (status, seen, todo) => {
    service.answersWith(status);
    const { faults, of } = await doctored(server.url);
    expect(faults).toEqual(["upstream", "a picture", "events"]);
    expect(of("upstream")).toMatchObject({ seen: expect.stringMatching(seen), todo: expect.stringMatching(todo) });
    expect(of("upstream")?.seen).toContain(service.url);
  });

  it("names an upstream that is down", async () => {
    const gone = await moodyService();
    await gone.close();
    const upstream = async () => (await doctored(server.url)).of("upstream")?.seen ?? "";
    await edited({ UPSTREAM_URL: gone.url }, async () => (await upstream()).includes(gone.url));
    expect(await upstream()).toContain("could not be reached");
  });

  it("finds an allowed page in, a foreign one out, and names a page that is not let in", async () => {
    const { of } = await doctored(server.url);
    expect(of("a page's call")).toMatchObject({ is: "ok", seen: "https://app.example.com may call" });
    expect(of("a foreign page")).toMatchObject({ is: "ok", seen: "may not call" });
    const closed = await doctored(server.url, { origin: "https://other.example.com" });
    expect(closed.of("a page's call")).toMatchObject({ is: "fault", todo: expect.stringContaining("ALLOWED_ORIGINS") });
  });

  it("says who there is no user to ask as", async () => {
    await edited({ ANONYMOUS: "off" }, async () => {
      const { status } = await fetch(`${server.url}/sessions`, { method: "POST", body: "{}" });
      return status === 403;
    });
    const { of } = await doctored(server.url, { appSecret: undefined });
    expect(of("a user's token")).toMatchObject({ is: "left out", seen: expect.stringContaining("ANONYMOUS_OFF") });
    expect(of("pictures")?.is).toBe("left out");
  });

  it("says that the Worker refuses its settings", async () => {
    await edited({ ANONYMOUS: "sometimes" }, async () => (await fetch(`${server.url}/healthz`)).status === 500);
    const { faults, of } = await doctored(server.url);
    expect(faults).toEqual(["settings"]);
    expect(of("settings")?.todo).toContain("npx wrangler tail");
  });
});
