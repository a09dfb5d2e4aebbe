// A job's events: the generator over a made-up job, without any time passing; then the route, by token and by ticket.
import { describe, expect, it, vi } from "vitest";
import { jobEvents, type Source } from "../../../src/gateway/jobs/job-events.ts";
import { ticketsOf } from "../../../src/gateway/jobs/ticket.ts";
import { configOf, send } from "../../support/callers.ts";
import { expectProblem } from "../../support/problems.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, mintToken, model, watchCanary } from "./fake-upstream.ts";

watchCanary();

type Poll = { status: string; stream: readonly unknown[] };
const waits: Poll = { status: "IN_QUEUE", stream: [] };
const runs = (...stream: unknown[]): Poll => ({ status: "IN_PROGRESS", stream });
const over: Poll = { status: "COMPLETED", stream: [] };

interface Told {
  readonly reconnected?: boolean;
  readonly leaveAfter?: number;
  readonly costMicroUsd?: number;
  readonly progress?: unknown[];
}

async function eventsOf(polls: readonly Poll[], told: Told = {}) {
  const { reconnected = false, leaveAfter = Number.POSITIVE_INFINITY, costMicroUsd, progress } = told;
  const pauses: number[] = [];
  let asked = 0;
  const source: Source = {
    poll: async () => polls[Math.min(asked++, polls.length - 1)] ?? waits,
    final: async () => ({ job: { id: "handle", status: "COMPLETED", output: "made" }, costMicroUsd }),
    ...(progress && { progress: async () => progress.shift() }),
    pause: async (ms) => void pauses.push(ms),
    isOver: () => asked >= leaveAfter,
  };
  const events: [string, unknown][] = [];
  for await (const text of jobEvents(source, "event-id", reconnected)) {
    expect(text).toMatch(/^(retry: \d+\n)?event: \w+\nid: event-id\ndata: .*\n\n$/);
    const [, name = "", data = ""] = /event: (\w+)\n.*\ndata: (.*)\n/.exec(text) ?? [];
    events.push([name, JSON.parse(data)]);
  }
  return { events, pauses, asked };
}

describe("the events of a job", () => {
  it("tell each status once, each chunk, and the end with its output", async () => {
    const { events } = await eventsOf([
      waits,
      waits,
      runs({ output: "a" }, { output: "b" }),
      runs({ output: "c" }),
      over,
    ]);
    expect(events).toEqual([
      ["status", { status: "IN_QUEUE" }],
      ["status", { status: "IN_PROGRESS" }],
      ...["a", "b", "c"].map((output) => ["chunk", { output }]),
      ["status", { status: "COMPLETED" }],
      ["done", { id: "handle", status: "COMPLETED", output: "made" }],
    ]);
  });

  it("tell what it cost before its end, where that is known", async () => {
    const { events } = await eventsOf([over], { costMicroUsd: 2517 });
    expect(events.map(([name]) => name)).toEqual(["status", "cost", "done"]);
    expect(events[1]).toEqual(["cost", { usd: 0.002517 }]);
  });

  it("tell each report of progress once, while the job runs", async () => {
    const progress = [{ percent: 10 }, { percent: 10 }, undefined, { percent: 90 }, "never asked for"];
    const { events } = await eventsOf([waits, runs(), runs(), runs(), runs(), over], { progress });
    expect(events.slice(1, -2)).toEqual([
      ["status", { status: "IN_PROGRESS" }],
      ["progress", { percent: 10 }],
      ["progress", { percent: 90 }],
    ]);
    expect(progress).toHaveLength(1);
  });

  it("are asked for half as often where each poll is two questions", async () => {
    const { asked } = await eventsOf([waits], { progress: [] });
    expect(asked).toBe(20);
  });

  it("say after a reconnect that some may be missing", async () => {
    const { events } = await eventsOf([over], { reconnected: true });
    expect(events.map(([name]) => name)).toEqual(["gap", "status", "done"]);
  });

  it("hand out the chunks that are left before they end", async () => {
    const { events } = await eventsOf([{ status: "COMPLETED", stream: [{ output: "last" }] }, over]);
    expect(events.map(([name]) => name)).toEqual(["status", "chunk", "done"]);
  });

  it("ask ever less often, from half a second to five, and again soon after a chunk", async () => {
    const { pauses } = await eventsOf([...Array(14).fill(waits), runs("x"), runs(), over]);
    expect(pauses[0]).toBe(500);
    expect(pauses.slice(0, 14)).toEqual([...pauses.slice(0, 14)].sort((left, right) => left - right));
    expect(Math.max(...pauses)).toBe(5_000);
    expect(pauses.at(-1)).toBe(500);
  });

  it("end after forty polls with a word on when to come back", async () => {
    const { events, asked } = await eventsOf([waits]);
    expect(asked).toBe(40);
    expect(events.at(-1)).toEqual(["retry", { afterMs: expect.any(Number) }]);
  });

  it("ask no more once the client has left", async () => {
    expect((await eventsOf([waits], { leaveAfter: 3 })).asked).toBe(3);
  });
});

describe("the route", () => {
  const ended = (path: string) =>
    json(path.includes("/stream/") ? over : { id: "job-1", status: "COMPLETED", output: { cost: 0.001 } });

  async function following() {
    const upstream = new FakeUpstream(({ path }) => ended(path));
    const id = await upstream.job();
    const path = `/v2/${model}/events/${id}`;
    const ticket = await (await upstream.call("POST", path)).json<{ url: string; expiresAt: string }>();
    const { pathname, search } = new URL(ticket.url);
    return { upstream, id, path, ticket, ticketPath: pathname + search };
  }
  /** As EventSource does: no header of its own but Last-Event-ID. */
  const open = (upstream: FakeUpstream, path: string, headers = {}) =>
    upstream.call("GET", path, { headers: { Authorization: "", ...headers } });

  it("streams to a token, ends with the output under the handle, and settles", async () => {
    const { upstream, id, path } = await following();
    const response = await upstream.call("GET", path);
    expect(response.headers.get("Content-Type")).toBe("text/event-stream");
    const text = await response.text();
    expect(text).toContain(`event: done`);
    expect(text).toContain(`"id":"${id}"`);
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.001 }]);
  });

  it("streams to a ticket, and to whoever comes back with its last event", async () => {
    const { upstream, ticketPath, ticket } = await following();
    expect(Date.parse(ticket.expiresAt)).toBeGreaterThan(Date.now());
    const text = await (await open(upstream, ticketPath)).text();
    expect(text).toContain("event: done");
    const [, lastEventId = ""] = /id: (\w+)/.exec(text) ?? [];
    const again = await (await open(upstream, ticketPath, { "Last-Event-ID": lastEventId })).text();
    expect(again).toMatch(/^event: gap/);
  });

  it("refuses a ticket after its minute, but not whoever comes back with its last event", async () => {
    const { upstream, ticketPath, ticket } = await following();
    const text = await (await open(upstream, ticketPath)).text();
    const [, lastEventId = ""] = /id: (\w+)/.exec(text) ?? [];
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(ticket.expiresAt) + 1 });
    try {
      await expectProblem(await open(upstream, ticketPath), "TICKET_REFUSED");
      const forged = { "Last-Event-ID": lastEventId.replace(/.$/, (last) => (last === "0" ? "1" : "0")) };
      await expectProblem(await open(upstream, ticketPath, forged), "TICKET_REFUSED");
      expect((await open(upstream, ticketPath, { "Last-Event-ID": lastEventId })).status).toBe(200);
    } finally {
      vi.useRealTimers();
    }
  });

  it("beats every fifteen seconds while a poll is under way, and no more once it has ended", async () => {
    const { upstream, path } = await following();
    const polled = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    upstream.answer = async ({ path: asked }) => {
      polled.resolve();
      await held.promise;
      return ended(asked);
    };
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const answered = upstream.call("GET", path);
      await polled.promise;
      vi.advanceTimersByTime(44_999);
      held.resolve();
      expect(await (await answered).text()).toMatch(/^:\n\n:\n\nevent: status\n[\s\S]*event: done\n/);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("starts nothing for a HEAD", async () => {
    const { upstream, path } = await following();
    upstream.seen.length = 0;
    expect((await upstream.call("HEAD", path)).status).toBe(200);
    expect(upstream.seen).toEqual([]);
  });

  it("says what went wrong as an event", async () => {
    const { upstream, path } = await following();
    upstream.answer = () => json({ error: "no" }, 500);
    expect(await (await upstream.call("GET", path)).text()).toContain(`event: error\ndata: {"code":"UPSTREAM_FAILED"`);
  });

  it.each([
    ["of another job", (path: string) => path.replace(/events\/job-1\.\w/, "events/job-2.0")],
    ["of another model", (path: string) => path.replace(model, "black-forest-labs-flux-1-dev")],
    ["with a later end", (path: string) => path.replace(/\.(\d{13})\./, (_, at) => `.${Number(at) + 1}.`)],
    ["with another mac", (path: string) => path.replace(/.$/, (last) => (last === "0" ? "1" : "0"))],
    ["that is none", (path: string) => path.replace(/ticket=.*/, "ticket=x")],
    ["that is empty", (path: string) => path.replace(/ticket=.*/, "ticket=")],
  ])("refuses a ticket %s", async (_name, change) => {
    const { upstream, ticketPath } = await following();
    await expectProblem(await open(upstream, change(ticketPath)), "TICKET_REFUSED");
  });

  it("lets no flood of tickets through", async () => {
    const { upstream, ticketPath } = await following();
    Object.assign(upstream.env, { FLOOD: { limit: async () => ({ success: false }) } });
    await expectProblem(await open(upstream, ticketPath), "RATE_LIMITED");
  });

  it("refuses a ticket of a user who was revoked meanwhile", async () => {
    const { upstream, ticketPath } = await following();
    const user = `user-${upstream.origin}`;
    const path = `/admin/users/${encodeURIComponent(user)}/revoke`;
    expect((await send(upstream.env, "POST", path, { key: testSettings.ADMIN_TOKEN, body: {} })).status).toBe(200);
    await expectProblem(await open(upstream, ticketPath), "TICKET_REFUSED");
  });

  it("makes no ticket for a token that may not see events", async () => {
    const { upstream, path } = await following();
    const key = await mintToken(upstream.env, { user: `user-${upstream.origin}`, operations: ["status"] });
    await expectProblem(await upstream.call("POST", path, { key }), "OPERATION_FORBIDDEN");
  });
});

describe("a ticket in time", () => {
  const tickets = ticketsOf(configOf());
  const now = 1_763_000_000_000;
  const holder = { owner: "user:ada", payer: "user:ada", issuedAt: 5, tokenId: "t" };

  it("opens for a minute, and for an hour to whoever was connected", async () => {
    const { ticket, expiresAt } = await tickets.mint(holder, "/p", now);
    const eventId = await tickets.eventId("/p");
    expect(expiresAt - now).toBe(60_000);
    const opens = (at: number, id?: string) => tickets.open(ticket, "/p", id, at);
    expect(await opens(expiresAt)).toEqual(holder);
    expect(await opens(expiresAt + 1)).toBeUndefined();
    expect(await opens(expiresAt + 1, eventId)).toEqual(holder);
    expect(await opens(expiresAt + 1, eventId.replace(/.$/, "x"))).toBeUndefined();
    expect(await opens(expiresAt + 1, await tickets.eventId("/q"))).toBeUndefined();
    expect(await opens(expiresAt + 60 * 60_000, eventId)).toBeUndefined();
  });

  it("opens nothing after the end of the token that it was made with, also for whoever was connected", async () => {
    const end = now + 10_000.5;
    const { ticket, expiresAt } = tickets.mint({ ...holder, expiresAt: end }, "/p", now);
    const eventId = tickets.eventId("/p");
    expect(expiresAt).toBe(now + 10_000);
    expect(tickets.open(ticket, "/p", undefined, now + 9999)).toMatchObject(holder);
    expect(tickets.open(ticket, "/p", eventId, now + 9999)).toMatchObject(holder);
    for (const id of [undefined, eventId]) expect(tickets.open(ticket, "/p", id, now + 10_001)).toBeUndefined();
  });

  it("holds the longest user's name", async () => {
    const user = `user:${"語".repeat(256)}`;
    const { ticket } = await tickets.mint({ ...holder, owner: user, payer: user }, "/p", now);
    expect(await tickets.open(ticket, "/p", undefined, now)).toMatchObject({ owner: user });
  });
});
