// A minute of torture's clients before its hostile upstream, twice, against `npm start`.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { Unhurt } from "../e2e/support/unhurt.ts";
import { Clients } from "../torture/clients.ts";
import { HostileUpstream } from "../torture/hostile-upstream.ts";
import { KeyWatch } from "../torture/key-watch.ts";
import { prepare, settingsFor } from "../torture/prepare.ts";
import { WebhookReceiver } from "../torture/webhook-receiver.ts";

const lanes = 12;
const attackedMs = 60_000;
const turnMs = 5_000;
/** After so many its memory grows no further, however long they take: what is reserved for them stays. */
const firstTurns = 1000;
const seeds = [1, 2];

const watch = new KeyWatch();
let upstream: HostileUpstream;
let receiver: WebhookReceiver;
let server: NpmStart;
let unhurt: Unhurt;
let tokens: ReadonlyMap<string, string>;

beforeAll(async () => {
  const seed = seeds[0] as number;
  upstream = await new HostileUpstream(seed).listen();
  receiver = await new WebhookReceiver(watch).listen();
  server = await NpmStart.start({ settings: settingsFor(upstream.url, seed) });
  upstream.gateway = server.url;
  unhurt = new Unhurt(server);
  tokens = await prepare(server.url);
});
afterAll(async () => {
  await Promise.all([server.stop(), upstream.close(), receiver.close()]);
});

async function attack(seed: number, isOver: (clients: Clients) => boolean): Promise<void> {
  upstream.seed = seed;
  const clients = new Clients(server.url, tokens, seed, { receiver: receiver.url, watch });
  while (!isOver(clients)) await clients.run(lanes, Date.now() + turnMs);
  expect([...clients.faults, ...clients.tooManyBroken(), ...receiver.faults, ...watch.faults]).toEqual([]);
  expect(clients.accepted.length).toBeGreaterThan(0);
}

describe("torture's clients", () => {
  it("find no fault before the memory they take is known", async () => {
    await attack(0, ({ turns }) => turns >= firstTurns);
    await unhurt.settle();
  });

  it.each(seeds)("find no fault in a minute with seed %i, and npm start serves on", async (seed) => {
    const until = Date.now() + attackedMs;
    await attack(seed, () => Date.now() >= until);
    await unhurt.expect();
  });
});
