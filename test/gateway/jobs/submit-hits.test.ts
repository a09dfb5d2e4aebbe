// A hit that is new for its owner counts as a request of its payer's, and wakes no other object; the same hit again calls nobody.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { kept, Studio, World } from "../media/studio.ts";
import { MeterTap } from "./meter-tap.ts";

const refusal = { admitted: false, code: "RATE_LIMITED", detail: "requests-minute", retryAfterSeconds: 7 } as const;

afterEach(emptyStorage);
beforeEach(() => {
  new World();
});

/** Objects of pictures that an isolate asks for. */
function watched() {
  const woken: string[] = [];
  const watch = (namespace: { getByName: (name: string) => unknown }) => ({
    getByName: (name: string) => {
      woken.push(name);
      return namespace.getByName(name);
    },
  });
  return { woken, JOB_MEDIA: watch(env.JOB_MEDIA), SHARED_REQUEST: watch(env.SHARED_REQUEST) };
}

it("attack M4: each new visitor's hit is one call of his meter, and no object of a picture", async () => {
  const tap = new MeterTap();
  const { woken, ...objects } = watched();
  const shared = new Studio({ REUSE_SCOPE: "shared", USER_METER: tap.namespace, ...objects });
  await shared.paint(await shared.token("ada"));
  const visitors = ["bob", "eve", "mallory"];
  for (const user of visitors) {
    const token = await shared.token(user);
    tap.calls.length = 0;
    woken.length = 0;
    for (let hits = 0; hits < 3; hits++) {
      expect((await shared.paint(token)).headers.get("X-Cache")).toBe("HIT");
    }
    expect(tap.names()).toEqual(["countHit"]);
    expect(woken).toEqual([]);
  }
  expect(await kept("link/")).toHaveLength(visitors.length);
});

it("attack M4: a rule of the payer's refuses it, and then no link is made", async () => {
  const tap = new MeterTap();
  const shared = new Studio({ REUSE_SCOPE: "shared", USER_METER: tap.namespace });
  await shared.paint(await shared.token("ada"));
  const bob = await shared.token("bob");
  const links = await kept("media/");
  tap.instead = ({ name }) => (name === "countHit" ? refusal : undefined);
  const refused = await shared.paint(bob);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("Retry-After")).toBe("7");
  expect(await refused.json()).toMatchObject({ code: "RATE_LIMITED" });
  expect(await kept("media/")).toEqual(links);
  tap.instead = () => undefined;
  expect((await shared.paint(bob)).headers.get("X-Cache")).toBe("HIT");
});

it("is known from another isolate, too", async () => {
  const tap = new MeterTap();
  const settings = { REUSE_SCOPE: "shared", USER_METER: tap.namespace };
  const shared = new Studio(settings);
  await shared.paint(await shared.token("ada"));
  const { path } = await shared.link(await shared.token("bob"));
  tap.calls.length = 0;
  const elsewhere = new Studio(settings);
  expect((await elsewhere.link(await elsewhere.token("bob"))).path).toBe(path);
  expect(tap.names()).toEqual([]);
});

it("a hit of the owner's own answer calls nobody", async () => {
  const tap = new MeterTap();
  const own = new Studio({ USER_METER: tap.namespace });
  const token = await own.token("ada");
  await own.paint(token);
  tap.calls.length = 0;
  expect((await own.paint(token)).headers.get("X-Cache")).toBe("HIT");
  expect(tap.names()).toEqual([]);
});
