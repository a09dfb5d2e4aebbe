// Quotas over a process that is killed in the middle, twice: no job lost, none charged twice, every balance the true one.
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import { isAsSync } from "../../src/gateway/jobs/admission-id.ts";
import type { Rule } from "../../src/gateway/operator-settings/rules.ts";
import { amount } from "../support/amount.ts";
import { Server } from "../support/serve.ts";
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { type Booked, type Books, type Order, type Outcome, Payer } from "./support/payer.ts";
import { UpstreamWatch } from "./support/upstream-watch.ts";

const image = "black-forest-labs-flux-1-schnell";
const text = "granite-4-0-h-small";
/** Used by nobody but the payer of few places, so that the upstream shows what was let through. */
const fewPlacesModel = "qwen3-32b-awq";
const models = [image, text, fewPlacesModel];
const places = 3;

const ordersEach = amount(40, 16);
const atOnce = 24;
/** Of all orders a fourth, and a half. */
const killsAfter = [1.5 * ordersEach, 3 * ordersEach];
const strikesWithinMs = 30;
/** An admission that nobody bound is given up with it, and waited for: the default would keep it for minutes. */
const ttlMs = amount(60_000, limits.ttlMs.min);
/** Alarms, hooks and their repetitions; what is known settles at once. */
const settlesWithinMs = ttlMs + 30_000;
/** A notice that a kill cut off is sent again after this, and each kill may cut one off. */
const noticedWithinMs = killsAfter.length * (limits.webhook.timeoutMs + limits.webhook.delayMs);
const agreesWithinMs = 10_000;
/** Beyond what is tested, on a machine that is busy. */
const endsWithinMs = 60_000;

const budget: Rule = { unit: "usd", limit: 1000, per: "month" };

let server: Server;
beforeAll(async () => {
  server = await Server.start({ settings: { SAMPLE_DELAY_MS: "60" } });
});
afterAll(() => server.stop());

interface Accepted {
  readonly model: string;
  readonly at: number;
}
interface Client {
  readonly payer: Payer;
  readonly orders: readonly Order[];
  /** The handles that were answered. */
  readonly accepted: Map<string, Accepted>;
  readonly ended: Set<string>;
  readonly refusals: string[];
}

describe("a gateway killed twice in the middle of its submits", () => {
  let watch: UpstreamWatch;
  beforeAll(() => {
    watch = new UpstreamWatch(server, models);
  });
  afterAll(() => watch.stop());

  it("loses no job, charges none twice, and keeps every balance true", { timeout: 240_000 }, async () => {
    const clients = await Promise.all([...crowd(), fewPlaces()]);
    const orders = clients.flatMap((client) => client.orders.map((order) => ({ client, order })));
    const crashes = new Crashes();
    await inParallel(interleaved(orders), atOnce, async ({ client, order }) => {
      await crashes.over;
      let outcome = await client.payer.submit(order);
      if (outcome.kind === "cut" && order.key !== undefined) {
        await crashes.over;
        outcome = await client.payer.submit(order);
      }
      note(client, order, outcome);
      await crashes.mayStrike(clients);
    });
    expect(crashes.count).toBe(killsAfter.length);

    await everyJobEnds(clients);
    await watch.sawAllEnd(2 * endsWithinMs);
    const settled = await eventually(
      "all of the upstream's jobs in the books",
      settlesWithinMs + noticedWithinMs,
      async () => {
        const books = await Promise.all(
          clients.map(({ payer, accepted }) => agreed(payer, settlesWithinMs, (one) => isSettled(one, accepted))),
        );
        const jobs = books.flatMap(({ jobs }) => jobs);
        const refs = jobs.flatMap(({ id }) => (id === null ? [] : [refOf(id)]));
        const known = new Set(refs);
        // Each has one payer, and is there once. That of an answer that was cut off is known by its notice alone.
        expect(known.size).toBe(refs.length);
        expect(refs.filter((ref) => !watch.costs.has(ref))).toEqual([]);
        const unknown = [...watch.costs].flatMap(([ref, cost]) => (known.has(ref) ? [] : [cost]));
        const paid = jobs.filter(({ id, costMicroUsd }) => id === null && costMicroUsd > 0);
        expect(paid.map(({ costMicroUsd }) => costMicroUsd).sort()).toEqual(unknown.sort());
        return books;
      },
    );
    await watch.stop();

    for (const [index, { jobs }] of settled.entries()) {
      const { accepted, refusals } = clients[index] as Client;
      const listed = new Set(jobs.map(({ id }) => id));
      expect([...accepted.keys()].filter((id) => !listed.has(id) && !isHit(id))).toEqual([]);
      const named = jobs.filter(({ id }) => id !== null);
      expect(named.map(({ costMicroUsd }) => costMicroUsd)).toEqual(named.map((job) => dueFor(job, watch)));
      const allowed = index === clients.length - 1 ? ["IN_PROGRESS", "TOO_MANY_JOBS"] : ["IN_PROGRESS"];
      expect(refusals.filter((code) => !allowed.includes(code))).toEqual([]);
      expect(jobs.filter(({ id }) => id !== null).length).toBeLessThanOrEqual(ordersEach);
    }
    expect(watch.mostOpen.get(fewPlacesModel)).toBeGreaterThan(0);
    expect(watch.mostOpen.get(fewPlacesModel)).toBeLessThanOrEqual(places);
  });
});

/** Kills the process when so many jobs were accepted, and holds the clients until it is back with its books in order. */
class Crashes {
  count = 0;
  over: Promise<void> = Promise.resolve();

  async mayStrike(clients: readonly Client[]): Promise<void> {
    const accepted = clients.reduce((sum, client) => sum + client.accepted.size, 0);
    if (accepted < (killsAfter[this.count] ?? Number.POSITIVE_INFINITY)) return;
    this.count += 1;
    // Wherever the others are then: before the admission, the relay, the binding or the answer.
    await setTimeout(Math.random() * strikesWithinMs);
    this.over = this.#crash(clients);
    await this.over;
  }

  async #crash(clients: readonly Client[]): Promise<void> {
    await server.kill9();
    await server.restart();
    // Before and after what was cut short has ended.
    await Promise.all(clients.map(({ payer }) => agreed(payer, agreesWithinMs, () => true)));
    await everyJobEnds(clients);
    await Promise.all(clients.map(({ payer }) => agreed(payer, agreesWithinMs, () => true)));
  }
}

it("admits exactly 50 of 200 parallel submits, and forgets none of them when killed", { timeout: 60_000 }, async () => {
  // Of its own: a kept connection that its idle server just closed would be cut in the other's crowd.
  const fresh = await Server.start();
  onTestFinished(() => fresh.stop());
  const payer = await Payer.mint(fresh, "crowded", [{ unit: "requests", limit: 50, per: "day" }], "operator");
  const outcomes = await Promise.all(Array.from({ length: 200 }, (_, n) => payer.submit(imageOrder("crowded", n))));
  const answers = outcomes.map((outcome) => (outcome.kind === "refused" ? outcome.code : outcome.kind));
  const expected = [...Array<string>(150).fill("RATE_LIMITED"), ...Array<string>(50).fill("accepted")];
  expect(answers.toSorted()).toEqual(expected);
  await fresh.kill9();
  await fresh.restart();
  expect(await payer.submit(imageOrder("crowded", 200))).toEqual({ kind: "refused", code: "RATE_LIMITED" });
  const { jobs } = await payer.books([image]);
  expect(jobs).toHaveLength(50);
});

function crowd(): Promise<Client>[] {
  const rules: Rule[] = [budget, { unit: "jobs", limit: ordersEach }];
  return ["ada", "bob", "cleo", "dan", "eve"].map(async (user, index) => {
    const payer = await Payer.mint(server, user, rules, index % 2 === 0 ? "operator" : "token");
    const orders = Array.from({ length: ordersEach }, (_, n) => ({
      ...(n % 2 === 0 ? imageOrder(user, n) : textOrder(user, n)),
      operation: n % 5 === 0 ? ("runsync" as const) : ("run" as const),
      ttlMs,
      ...(n % 4 < 2 && { key: `${user}-${n}` }),
    }));
    return { payer, orders, accepted: new Map<string, Accepted>(), ended: new Set<string>(), refusals: [] };
  });
}

async function fewPlaces(): Promise<Client> {
  const payer = await Payer.mint(server, "few", [budget, { unit: "jobs", limit: places }], "operator");
  const orders = Array.from({ length: ordersEach }, (_, n) => {
    return { model: fewPlacesModel, operation: "run" as const, input: { prompt: `few ${n}`, max_tokens: 16 }, ttlMs };
  });
  return { payer, orders, accepted: new Map<string, Accepted>(), ended: new Set<string>(), refusals: [] };
}

/** Every third names its seed, and so flies where others could join it. */
function imageOrder(user: string, n: number): Order {
  const input = { prompt: `${user} ${n}`, width: 256, height: 256, ...(n % 3 === 0 && { seed: n }) };
  return { model: image, operation: "run", input };
}

function textOrder(user: string, n: number): Order {
  const input = { messages: [{ role: "user", content: `${user} ${n}` }], sampling_params: { max_tokens: 16 } };
  return { model: text, operation: "run", input };
}

/** The clients in turn, since each has as many orders as the others. */
function interleaved<T>(items: readonly T[]): T[] {
  return Array.from({ length: ordersEach }, (_, n) => items.filter((_, index) => index % ordersEach === n)).flat();
}

function note({ accepted, refusals }: Client, { model }: Order, outcome: Outcome): void {
  if (outcome.kind === "accepted") accepted.set(outcome.id, { model, at: Date.now() });
  if (outcome.kind === "refused") refusals.push(outcome.code);
}

/** Read until one reading is of one moment: the balance is what the jobs say, and so is the count of the open ones. */
function agreed(payer: Payer, withinMs: number, alsoHolds: (books: Books) => boolean): Promise<Books> {
  let last: Books | undefined;
  const agreement = eventually("books that agree", withinMs, async () => {
    last = await payer.books(models);
    return agrees(last) && alsoHolds(last) && last;
  });
  return agreement.catch((error) => {
    throw new Error(`${String(error)}: ${JSON.stringify(last)}`);
  });
}

function agrees({ jobs, limits, spent }: Books): boolean {
  const open = jobs.filter(({ isOpen }) => isOpen);
  const reserved = sum(open.map(({ reservedMicroUsd }) => reservedMicroUsd));
  const charged = sum(jobs.map(({ costMicroUsd }) => costMicroUsd));
  const inTotal = spent.microUsd === charged && spent.reservedMicroUsd === reserved;
  return limits.every(({ unit, ...limit }) => {
    if (unit === "jobs") return limit.used === open.length;
    return inTotal && limit.used === charged + reserved && limit.reserved === reserved;
  });
}

/** A job whose answer was cut off is known by its notice alone: what it cost is true, and yet assumed. */
function isSettled({ jobs, spent }: Books, accepted: Client["accepted"]): boolean {
  const unheard = jobs.filter(({ id }) => id === null || !accepted.has(id));
  const mayBeAssumed = sum(unheard.map(({ costMicroUsd }) => costMicroUsd));
  return jobs.every(({ isOpen }) => !isOpen) && spent.assumedMicroUsd <= mayBeAssumed;
}

/** What a job must cost. */
function dueFor({ id }: Booked, { costs }: UpstreamWatch): number | undefined {
  return costs.get(refOf(id ?? ""));
}

/** A handle is the upstream's id, the admission and their proof; who asked synchronously for what others may join sees `sync-` before it. */
function refOf(handle: string): string {
  const [ref = "", admission = ""] = handle.split(".");
  return isAsSync(admission) ? ref.slice("sync-".length) : ref;
}
/** A picture of a seed that was cut off once may be there when it is asked for again: no meter hears of it. */
const isHit = (handle: string) => /^(sync-)?cached-/.test(handle);
const sum = (amounts: readonly number[]) => amounts.reduce((total, amount) => total + amount, 0);

/** Its owner finds each that was answered, and sees its end. */
async function everyJobEnds(clients: readonly Client[]): Promise<void> {
  const jobs = clients.flatMap(({ payer, accepted, ended }) =>
    [...accepted].map(([id, { model, at }]) => ({ payer, id, model, at, ended })),
  );
  const followed = jobs.filter(({ id, ended }) => !ended.has(id));
  await inParallel(followed, atOnce, ({ payer, id, model, at, ended }) => {
    const isRemoved = () => Date.now() > at + ttlMs;
    let mayBeRemoved = isRemoved();
    return eventually(`the end of ${id}`, endsWithinMs, async () => {
      const status = await payer.status(model, id).catch((error) => {
        // On a machine so busy that its ttl passed meanwhile: the platform's own list has its end.
        if (mayBeRemoved && isRemoved()) return "COMPLETED";
        throw error;
      });
      mayBeRemoved = true;
      if (status === "COMPLETED") ended.add(id);
      else if (!status.startsWith("IN_")) throw new Error(`it is ${status}`);
      return ended.has(id);
    });
  });
}
