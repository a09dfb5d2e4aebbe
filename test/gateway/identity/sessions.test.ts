// `POST /sessions`: anonymous visitors, open, behind Turnstile, or not at all.
import { afterEach, describe, expect, it, vi } from "vitest";
import { ask, isolate, principalOf, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { testSettings } from "../../support/settings.ts";

interface Issued {
  token: string;
  user: string;
  plan: string;
  expiresAt: string;
}
const from = (address: string) => ({ "CF-Connecting-IP": address });
const visit = (within: Env, body?: unknown, headers: Record<string, string> = from("203.0.113.7"), key?: string) =>
  send(within, "POST", "/sessions", { body, headers, ...(key !== undefined && { key }) });
const issuedBy = async (response: Response) => {
  expect(response.status).toBe(200);
  return response.json<Issued>();
};
const deployed = { LOCAL: "", UPSTREAM_API_KEY: "upstream-key-of-the-tests-0123456789abc" };

afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await emptyStorage();
});

describe("an anonymous visitor", () => {
  it("gets an owner of its own for an hour, on the anonymous plan", async () => {
    const start = Date.now();
    vi.setSystemTime(start);
    const within = isolate();
    const issued = await issuedBy(await visit(within));
    expect(issued).toEqual({
      token: expect.any(String),
      user: expect.stringMatching(/^anon:[0-9a-f]{32}$/),
      plan: "anonymous",
      expiresAt: new Date((Math.floor(start / 1000) + 3600) * 1000).toISOString(),
    });
    const principal = await principalOf(await ask(within, issued.token));
    expect(principal).toMatchObject({ kind: "anonymous", owner: issued.user, plan: "anonymous" });
  });

  it("is on the plan that sessions have now, whatever was said when it came", async () => {
    const developer = isolate({ SESSION_PLAN: "" });
    const issued = await issuedBy(await visit(developer));
    expect(issued.plan).toBe("developer");
    expect((await principalOf(await ask(developer, issued.token))).plan).toBe("developer");
    const strict = isolate({ SESSION_PLAN: "anonymous" });
    expect((await principalOf(await ask(strict, issued.token))).plan).toBe("anonymous");
    const open = isolate({ ...deployed, ANONYMOUS: "open", SESSION_PLAN: "" });
    expect((await issuedBy(await visit(open))).plan).toBe("anonymous");
  });

  it("of a developer's machine has no limit of money, 20 jobs at once and 600 requests a minute", async () => {
    const developer = isolate({ SESSION_PLAN: "developer" });
    const { token } = await issuedBy(await visit(developer));
    const { plan, limits } = await (await send(developer, "GET", "/usage", { key: token })).json<{
      plan: string;
      limits: { name: string; limit: number }[];
    }>();
    expect(plan).toBe("developer");
    expect(limits.map(({ name, limit }) => [name, limit])).toEqual([
      ["requests-minute", 600],
      ["jobs", 20],
    ]);
  });

  it("gets no new quota with a new session: the payer is its address, the owner is not", async () => {
    const within = isolate();
    const principals = await Promise.all(
      [1, 2].map(async () => principalOf(await ask(within, (await issuedBy(await visit(within, {}))).token))),
    );
    expect(principals.map(({ payer }) => payer)).toEqual(["addr:203.0.113.7/32", "addr:203.0.113.7/32"]);
    expect(new Set(principals.map(({ owner }) => owner)).size).toBe(2);
  });

  it("keeps its owner when it renews a session that is still good, and only then", async () => {
    const within = isolate();
    const { token, user } = await issuedBy(await visit(within));
    expect((await issuedBy(await visit(within, {}, {}, token))).user).toBe(user);
    const minted = await send(within, "POST", "/tokens", { key: testSettings.APP_SECRET, body: { user: "ada" } });
    const { token: mintedToken } = await minted.json<Issued>();
    for (const other of ["rubbish", testSettings.ADMIN_TOKEN, `${token}x`, mintedToken]) {
      const fresh = await issuedBy(await visit(within, {}, {}, other));
      expect(fresh.user).toMatch(/^anon:[0-9a-f]{32}$/);
      expect(fresh.user).not.toBe(user);
    }
    await send(within, "POST", `/admin/users/${user}/revoke`, { key: testSettings.ADMIN_TOKEN });
    expect((await issuedBy(await visit(within, {}, {}, token))).user).not.toBe(user);
  });

  it("attack A2: pays where it began, when it is renewed from another address", async () => {
    const within = isolate();
    const payerOf = ({ token }: Issued) => JSON.parse(atob(token.split(".")[1] ?? "")).payer;
    const first = await issuedBy(await visit(within));
    const renewed = await issuedBy(await visit(within, {}, from("198.51.100.9"), first.token));
    expect(payerOf(renewed)).toBe(payerOf(first));
    expect(payerOf(await issuedBy(await visit(within, {}, from("198.51.100.9"))))).not.toBe(payerOf(first));
  });

  it("is served where it can be told from others, or on a developer's machine", async () => {
    expect((await visit(isolate(), {}, {})).status).toBe(200);
    const open = isolate({ ...deployed, ANONYMOUS: "open" });
    expect((await visit(open)).status).toBe(200);
    expect(await refusalOf(await visit(open, {}, {}))).toMatchObject({ status: 403, code: "FORBIDDEN" });
    expect(await refusalOf(await visit(open, {}, from("10.0.0.300")))).toMatchObject({ code: "FORBIDDEN" });
  });

  it("is refused where sessions are off, as they are in a deployment that does not say", async () => {
    for (const within of [isolate({ ANONYMOUS: "off" }), isolate(deployed)]) {
      expect(await refusalOf(await visit(within))).toMatchObject({ status: 403, code: "ANONYMOUS_OFF" });
    }
  });

  it.each<[string, unknown, number, string]>([
    ["no JSON", "{", 400, "INVALID_JSON"],
    ["no object", "7", 400, "INVALID_REQUEST"],
    ["an unknown key", { plan: "unlimited" }, 400, "INVALID_REQUEST"],
    ["a response that is too long", { turnstile: "x".repeat(2049) }, 400, "INVALID_REQUEST"],
    ["too much", "x".repeat(70_000), 413, "PAYLOAD_TOO_LARGE"],
  ])("is refused with %s", async (_, body, status, code) => {
    expect(await refusalOf(await visit(isolate(), body))).toMatchObject({ status, code });
  });
});

describe("behind Turnstile", () => {
  const settings = {
    ANONYMOUS: "turnstile",
    TURNSTILE_SECRET: "turnstile-secret",
    ALLOWED_ORIGINS: "https://app.example.com:8443,https://*.pages.example.org",
  };
  const body = { turnstile: "response-of-the-widget" };
  const answers = (answer: () => Response | Promise<Response>) =>
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => answer());
  const passes = (hostname?: string) => () => Response.json({ success: true, "error-codes": [], hostname });
  const fails =
    (...codes: string[]) =>
    () =>
      Response.json({ success: false, "error-codes": codes });

  it("a visitor who passed is let in: asked once, with the address, with nothing that allows a replay", async () => {
    const fetches = answers(passes("app.example.com"));
    await issuedBy(await visit(isolate(settings), body));
    expect(fetches).toHaveBeenCalledTimes(1);
    const request = new Request(fetches.mock.calls[0]?.[0] as Request);
    expect(request.url).toBe("https://challenges.cloudflare.com/turnstile/v0/siteverify");
    expect(await request.json()).toEqual({
      secret: "turnstile-secret",
      response: "response-of-the-widget",
      remoteip: "203.0.113.7",
    });
  });

  it.each<[string, string | undefined, object, number]>([
    ["a page of ours", "app.example.com", {}, 200],
    ["one of the subdomains", "a.b.pages.example.org", {}, 200],
    ["the bare domain of a wildcard", "pages.example.org", {}, 403],
    ["another's page", "evil.example", {}, 403],
    ["a page that only ends alike", "evilapp.example.com", {}, 403],
    ["no page at all", undefined, {}, 403],
    [
      "the public URL, where no origin is named",
      "sluice.example.com",
      { PUBLIC_URL: "https://sluice.example.com/" },
      200,
    ],
    ["another, where no origin is named", "app.example.com", { PUBLIC_URL: "https://sluice.example.com" }, 403],
    ["our own host, where nothing is named", "gateway.example.com", { PUBLIC_URL: "" }, 200],
    ["another, where nothing is named", "app.example.com", { PUBLIC_URL: "" }, 403],
  ])("the challenge was passed on %s", async (_, hostname, change, status) => {
    answers(passes(hostname));
    const origins = "PUBLIC_URL" in change ? { ...deployed, ALLOWED_ORIGINS: "" } : {};
    expect((await visit(isolate({ ...settings, ...origins, ...change }), body)).status).toBe(status);
  });

  it.each<[string, unknown, () => Response | Promise<Response>, number, string]>([
    ["no response", {}, passes("app.example.com"), 403, "TURNSTILE_FAILED"],
    ["one that was used", body, fails("timeout-or-duplicate"), 403, "TURNSTILE_FAILED"],
    ["one that is made up", body, fails("invalid-input-response"), 403, "TURNSTILE_FAILED"],
    ["a secret of ours that is wrong", body, fails("invalid-input-secret"), 503, "TURNSTILE_UNAVAILABLE"],
    ["a fault of Cloudflare's", body, fails("internal-error"), 503, "TURNSTILE_UNAVAILABLE"],
    ["no answer", body, () => Promise.reject(new Error("reset")), 503, "TURNSTILE_UNAVAILABLE"],
    ["an answer that is no JSON", body, () => new Response("<html>", { status: 502 }), 503, "TURNSTILE_UNAVAILABLE"],
    [
      "a word for success",
      body,
      () => Response.json({ success: "true", hostname: "app.example.com" }),
      503,
      "TURNSTILE_UNAVAILABLE",
    ],
  ])("a visitor is refused with %s", async (_, sent, answer, status, code) => {
    answers(answer);
    expect(await refusalOf(await visit(isolate(settings), sent))).toMatchObject({ status, code });
  });
});
