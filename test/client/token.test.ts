// The caller's token: renewed before it ends, where the gateway says that it has, and once for all who wait.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSluice } from "../../src/client/index.ts";
import { keepToken } from "../../src/client/token.ts";
import { FakeGateway, json, refusal } from "./fake-gateway.ts";

const now = Date.UTC(2031, 5, 16);
beforeEach(() => void vi.useFakeTimers({ now }));
afterEach(() => void vi.useRealTimers());

/** A JSON Web Token that ends after so many seconds; who signed it is nobody's business here. */
function token(name: string, seconds: number): string {
  const claims = { sub: name, exp: (Date.now() + seconds * 1000) / 1000, said: "ÿ>?" };
  return `x.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
}

describe("a token", () => {
  it("that is a string is sent as it is", async () => {
    const gateway = new FakeGateway().on(/models/, () => json({ models: [] }));
    await createSluice({ url: `${gateway.url}/`, token: "mine", fetch: gateway.fetch }).models();
    expect(gateway.seen[0]?.path).toBe("/models");
    expect(gateway.seen[0]?.headers.get("Authorization")).toBe("Bearer mine");
  });

  it.each<[string, (name: string) => string | { token: string; expiresAt: string }]>([
    ["says its end itself", (name) => token(name, 3600)],
    ["came with it", (name) => ({ token: name, expiresAt: new Date(Date.now() + 3_600_000).toISOString() })],
  ])("is asked for again a minute before its end, which it %s", async (_name, make) => {
    let asked = 0;
    const tokens = keepToken(async () => make(`token-${++asked}`));
    const first = await tokens.current();
    vi.advanceTimersByTime(3_539_000);
    expect(await tokens.current()).toBe(first);
    vi.advanceTimersByTime(2_000);
    expect(await tokens.current()).not.toBe(first);
    expect(asked).toBe(2);
  });

  it("of a short life is renewed in its last quarter", async () => {
    let asked = 0;
    const tokens = keepToken(() => token(`token-${++asked}`, 8));
    await tokens.current();
    vi.advanceTimersByTime(5_900);
    await tokens.current();
    expect(asked).toBe(1);
    vi.advanceTimersByTime(200);
    await tokens.current();
    expect(asked).toBe(2);
  });

  it("is asked for once, however many wait for it", async () => {
    const ask = vi.fn(async () => token("ada", 60));
    const tokens = keepToken(ask);
    const all = await Promise.all(Array.from({ length: 50 }, () => tokens.current()));
    expect(new Set(all).size).toBe(1);
    expect(ask).toHaveBeenCalledOnce();
  });

  it("that is being renewed is not asked for again where the old one is refused meanwhile", async () => {
    let asked = 0;
    const tokens = keepToken(async () => token(`token-${++asked}`, 8));
    const old = await tokens.current();
    vi.advanceTimersByTime(6_100);
    const [first, second] = await Promise.all([tokens.current(), tokens.renewed(old)]);
    expect([asked, first]).toEqual([2, second]);
  });

  it("that seems to have ended by this machine's clock is used until the gateway refuses it", async () => {
    const ask = vi.fn(() => token("ada", -100));
    const tokens = keepToken(ask);
    await tokens.current();
    await tokens.current();
    expect(ask).toHaveBeenCalledOnce();
  });

  it("that could not be had is asked for at the next call, and its failure is the caller's own", async () => {
    const ask = vi.fn(async () => token("ada", 60)).mockRejectedValueOnce(new Error("signed out"));
    const tokens = keepToken(ask);
    await expect(tokens.current()).rejects.toThrow("signed out");
    expect(await tokens.current()).toBe(token("ada", 60));
  });
});

describe("a token that the gateway refuses", () => {
  const old = /Bearer token-1$/;
  const gatewayOf = () =>
    new FakeGateway().on(/./, ({ headers }) =>
      old.test(headers.get("Authorization") ?? "")
        ? refusal(401, "TOKEN_EXPIRED", "The token has expired.")
        : json({ models: [] }),
    );

  it("is renewed once for all, and each call is made again", async () => {
    const gateway = gatewayOf();
    let asked = 0;
    const sluice = createSluice({ url: gateway.url, token: () => `token-${++asked}`, fetch: gateway.fetch });
    await Promise.all(Array.from({ length: 10 }, () => sluice.models()));
    expect(asked).toBe(2);
    expect(gateway.seen).toHaveLength(20);
  });

  it("is told to the caller where there is no other, without a second call", async () => {
    const gateway = gatewayOf();
    for (const source of ["token-1", () => "token-1"]) {
      const sluice = createSluice({ url: gateway.url, token: source, fetch: gateway.fetch });
      const refused = { name: "SluiceError", code: "TOKEN_EXPIRED", status: 401, requestId: "request-1" };
      await expect(sluice.models()).rejects.toMatchObject(refused);
    }
    expect(gateway.seen).toHaveLength(2);
  });
});

describe("a visitor without a token", () => {
  const gatewayOf = () => {
    let sessions = 0;
    return new FakeGateway()
      .on(/models/, () => json({ models: [] }))
      .on(/POST \/sessions/, () => {
        return json({ token: `session-${++sessions}`, expiresAt: new Date(Date.now() + 3_600_000).toISOString() });
      });
  };

  it("begins a session, and renews it as who they are", async () => {
    const gateway = gatewayOf();
    const sluice = createSluice({ url: gateway.url, fetch: gateway.fetch });
    await sluice.models();
    vi.advanceTimersByTime(3_550_000);
    await sluice.models();
    const [first, second] = gateway.calls(/sessions/);
    expect(first?.headers.get("Authorization")).toBeNull();
    expect(second?.headers.get("Authorization")).toBe("Bearer session-1");
  });

  it("stays who they are in another tab, until the session has ended", async () => {
    const gateway = gatewayOf();
    const kept = new Map<string, string>();
    const storage = {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
    };
    const open = () => createSluice({ url: gateway.url, storage, fetch: gateway.fetch });
    await open().models();
    await open().models();
    expect(gateway.calls(/sessions/)).toHaveLength(1);
    vi.advanceTimersByTime(3_600_000);
    await open().models();
    expect(gateway.calls(/sessions/)).toHaveLength(2);
  });

  it("is one visitor in tabs that were opened at once, and in one that renews", async () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
    };
    const gateway = gatewayOf();
    const tabs = [1, 2].map(() => createSluice({ url: gateway.url, storage, fetch: gateway.fetch }));
    const askAll = () => Promise.all(tabs.map((tab) => tab.models()));
    await askAll();
    await askAll();
    const used = () => gateway.calls(/models/).map(({ headers }) => headers.get("Authorization"));
    expect(new Set(used()).size).toBe(1);
    vi.advanceTimersByTime(3_550_000);
    await tabs[0]?.models();
    const sessions = gateway.calls(/sessions/).length;
    await tabs[1]?.models();
    expect(gateway.calls(/sessions/)).toHaveLength(sessions);
    expect(used().at(-1)).toBe(used().at(-2));
  });

  it("is asked for again where no network is, and told so in the end", async () => {
    let tries = 0;
    const gateway = gatewayOf();
    const { fetch } = gateway;
    const broken = async () => {
      tries++;
      throw new TypeError("fetch failed");
    };
    const sluice = createSluice({ url: gateway.url, fetch: broken });
    const refused = expect(sluice.models()).rejects.toMatchObject({ name: "SluiceError", code: "NETWORK" });
    await vi.runAllTimersAsync();
    await refused;
    expect(tries).toBe(5);
    const lost = createSluice({ url: gateway.url, fetch: (...asked) => (++tries < 8 ? broken() : fetch(...asked)) });
    const models = lost.models();
    await vi.runAllTimersAsync();
    expect(await models).toEqual([]);
  });

  it("is told why there is no session", async () => {
    const off = () => refusal(403, "ANONYMOUS_OFF", "Anonymous sessions are off.");
    const gateway = gatewayOf().on(/sessions/, off);
    const sluice = createSluice({ url: gateway.url, fetch: gateway.fetch });
    await expect(sluice.models()).rejects.toMatchObject({ code: "ANONYMOUS_OFF" });
  });
});
