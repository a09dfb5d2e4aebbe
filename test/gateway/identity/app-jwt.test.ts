// JWTs of the app's identity provider: who gets in as whom, and what happens when keys rotate or the provider is down.
import { afterEach, describe, expect, it, vi } from "vitest";
import { ask, askWith, isolate, principalOf, refusalOf } from "../../support/callers.ts";
import { makeProviderKey, providerSettings, signJwt, usualClaims } from "../../support/provider.ts";

const [first, second] = [await makeProviderKey("first"), await makeProviderKey("second")];
const minute = 60_000;

function publish(...answers: (() => Response | Promise<Response>)[]) {
  const rest = [...answers];
  return vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    const answer = rest.length > 1 ? rest.shift() : rest[0];
    return answer ? answer() : Promise.reject(new Error("nothing is published"));
  });
}
const keysOf =
  (...keys: (typeof first)[]) =>
  () =>
    Response.json({ keys: keys.map(({ publicJwk }) => publicJwk) });
const down = () => Promise.reject(new Error("connection refused"));

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("a JWT of the app's identity provider", () => {
  it("is its subject, as owner and payer, with the plan that it claims", async () => {
    publish(keysOf(first));
    const principal = await principalOf(await ask(isolate(providerSettings), await signJwt(first, usualClaims())));
    expect(principal).toMatchObject({
      kind: "user",
      owner: "user:ada",
      payer: "user:ada",
      plan: "pro",
      tokenId: "jwt-1",
    });
    expect(principal.ownerHash).toMatch(/^[0-9a-f]{16}$/);
    expect(principal.ownerHash).not.toContain("ada");
  });

  it("may come bare, and in any spelling of Bearer", async () => {
    publish(keysOf(first));
    const token = await signJwt(first, usualClaims());
    for (const Authorization of [token, `Bearer ${token}`, `bearer  ${token} `]) {
      expect((await askWith(isolate(providerSettings), { Authorization })).status).toBe(200);
    }
  });

  it.each(["PS256", "ES256", "EdDSA"])("may be signed with %s", async (alg) => {
    const key = await makeProviderKey("other", alg);
    publish(keysOf(key));
    expect((await ask(isolate(providerSettings), await signJwt(key, usualClaims()))).status).toBe(200);
  });

  it("takes its plan from a path, where the claim is no name of its own", async () => {
    publish(keysOf(first));
    const within = isolate({ ...providerSettings, JWT_PLAN_CLAIM: "app_metadata.plan" });
    const token = await signJwt(first, { ...usualClaims(), app_metadata: { plan: "team" } });
    expect((await principalOf(await ask(within, token))).plan).toBe("team");
  });

  it.each([{ plan: 7 }, { plan: "no such form!" }, { plan: undefined }])("has no plan with %o", async (claim) => {
    publish(keysOf(first));
    const token = await signJwt(first, { ...usualClaims(), ...claim });
    expect(await principalOf(await ask(isolate(providerSettings), token))).not.toHaveProperty("plan");
  });

  it("costs no cryptography and no fetch once it was verified, until its time is over", async () => {
    const fetches = publish(keysOf(first));
    const within = isolate(providerSettings);
    const token = await signJwt(first, usualClaims());
    await principalOf(await ask(within, token));
    const operations = (["verify", "sign", "digest", "importKey"] as const).map((name) =>
      vi.spyOn(crypto.subtle, name),
    );
    await principalOf(await ask(within, token));
    expect(operations.map((operation) => operation.mock.calls.length)).toEqual([0, 0, 0, 0]);
    expect(fetches).toHaveBeenCalledTimes(1);
    vi.setSystemTime(Date.now() + 11 * minute);
    expect(await refusalOf(await ask(within, token))).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
  });
});

describe("the provider's keys", () => {
  it("are fetched anew when a token names one that is not known", async () => {
    const fetches = publish(keysOf(first), keysOf(second));
    const within = isolate(providerSettings);
    const start = Date.now();
    await principalOf(await ask(within, await signJwt(first, usualClaims(start))));
    vi.setSystemTime(start + minute);
    await principalOf(await ask(within, await signJwt(second, usualClaims(start))));
    expect(fetches).toHaveBeenCalledTimes(2);
  });

  it("are not fetched for every key id that somebody makes up", async () => {
    const fetches = publish(keysOf(first));
    const within = isolate(providerSettings);
    const start = Date.now();
    vi.setSystemTime(start);
    const invented = await Promise.all(
      [...Array(20).keys()].map((n) => signJwt(second, usualClaims(start), { kid: `made-up-${n}` })),
    );
    for (const token of invented)
      expect(await refusalOf(await ask(within, token))).toMatchObject({ code: "UNAUTHORIZED" });
    expect(fetches).toHaveBeenCalledTimes(1);
    vi.setSystemTime(start + 31_000);
    for (const token of invented) await ask(within, token);
    expect(fetches).toHaveBeenCalledTimes(2);
  });

  it("stop counting once the provider has withdrawn them", async () => {
    publish(keysOf(first), keysOf(second));
    const within = isolate(providerSettings);
    const start = Date.now();
    const token = await signJwt(first, { ...usualClaims(start), exp: start / 1000 + 3600 });
    await principalOf(await ask(within, token));
    vi.setSystemTime(start + 11 * minute);
    expect(await refusalOf(await ask(within, token))).toMatchObject({
      status: 401,
      detail: expect.stringMatching(/"kid"/),
    });
  });

  it("count for an hour while the provider is down", async () => {
    publish(keysOf(first), down);
    const within = isolate(providerSettings);
    const start = Date.now();
    await principalOf(await ask(within, await signJwt(first, usualClaims(start))));
    for (const [later, status] of [
      [30, 200],
      [61, 503],
    ] as const) {
      vi.setSystemTime(start + later * minute);
      expect((await ask(within, await signJwt(first, usualClaims(start + later * minute)))).status).toBe(status);
    }
  });

  it.each<[string, () => Response | Promise<Response>]>([
    ["cannot be reached", down],
    ["answers 500", () => new Response("no", { status: 500 })],
    ["redirects", () => new Response(null, { status: 302, headers: { Location: "https://elsewhere.example.com/" } })],
    ["answers HTML", () => new Response("<html>")],
    ["answers another JSON", () => Response.json([])],
    ["answers without end", () => Response.json({ keys: [first.publicJwk], more: "x".repeat(300 * 1024) })],
  ])("503 when the provider %s, and then it is left alone a while", async (_, answer) => {
    const fetches = publish(answer);
    const within = isolate(providerSettings);
    const token = await signJwt(first, usualClaims());
    for (let n = 0; n < 3; n++) {
      const response = await ask(within, token);
      expect(response.headers.get("Retry-After")).toBe("5");
      expect(await refusalOf(response)).toMatchObject({ status: 503, code: "IDENTITY_UNAVAILABLE" });
    }
    expect(fetches).toHaveBeenCalledTimes(1);
    expect(new Request(fetches.mock.calls[0]?.[0] as Request).redirect).toBe("manual");
  });

  it("are public keys alone: a shared secret in the set is nobody's key", async () => {
    const secret = { kty: "oct", kid: "first", alg: "HS256", k: "c2VjcmV0" };
    publish(() => Response.json({ keys: [secret, { ...second.publicJwk, d: "AAAA" }] }));
    const response = await ask(isolate(providerSettings), await signJwt(second, usualClaims()));
    expect(await refusalOf(response)).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
  });
});
