// What once ended `npm start`, and more of it, three times each: the same processes serve afterwards.
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, Caller } from "../e2e/support/caller.ts";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { Unhurt } from "../e2e/support/unhurt.ts";
import { inParallel } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";

const flux = "black-forest-labs-flux-1-schnell";
/** An endpoint without a worker: its jobs wait, and calls for them are held. */
const waiting = "waiting";
const heldMs = 5000;
const rounds = [1, 2, 3];

let server: NpmStart;
let unhurt: Unhurt;
let visitor: string;
let user: string;
let caller: Caller;

beforeAll(async () => {
  server = await NpmStart.start({ args: ["--plan", "anonymous"], settings: { ENDPOINTS: waiting } });
  unhurt = new Unhurt(server);
  caller = new Caller(server.url);
  const opened = JSON.stringify({ passthrough: true, maxUsd: 0 });
  await caller.ask("PUT", `/admin/models/${waiting}`, testSettings.ADMIN_TOKEN, opened);
  visitor = tokenOf(await caller.ask("POST", "/sessions", "", "{}"));
  user = tokenOf(await caller.ask("POST", "/tokens", testSettings.APP_SECRET, `{"user":"ada","plan":"unlimited"}`));
});
afterAll(() => server.stop());

const tokenOf = ({ body }: Answer) => body.token ?? "";
const hold = () => caller.ask("POST", `/v2/${waiting}/runsync?wait=${heldMs}`, user, `{"input":{}}`);
const times = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Served; or refused by the flood shield (more than a thousand in ten seconds), or too late on a machine that is busy. */
const isFine = ({ status, body }: Answer) =>
  status === 200 || body.code === "RATE_LIMITED" || body.code === "UPSTREAM_TIMEOUT";

function brokenOff(error: Error & { code?: string }): undefined {
  if (error.code !== "ECONNRESET" && error.code !== "EPIPE") throw error;
}

beforeEach(() => caller.withFreshConnections());

describe.each(rounds)("npm start, round %i", (round) => {
  it("outlives a client that leaves in an upload of 8 MB", async () => {
    const socket = connect(server.port, "127.0.0.1").on("error", () => {});
    const head = [`POST /v2/${flux}/run HTTP/1.1`, "Host: sluice", `Authorization: Bearer ${user}`];
    socket.write(`${[...head, "Content-Length: 8000000"].join("\r\n")}\r\n\r\n{"input":{"prompt":"a","pad":"`);
    await new Promise((resolve) => socket.write("x".repeat(3_000_000), resolve));
    socket.destroy();
    await unhurt.expect();
  });

  it("outlives photos of 3 MB that a plan refuses", async () => {
    const image = `data:image/png;base64,${"A".repeat(3_000_000)}`;
    const photo = JSON.stringify({ input: { prompt: "a", image } });
    // The runtime hangs up on a body that nobody reads; a client that still writes may then miss the answer.
    const heard: Answer[] = [];
    for (let tries = 0; heard.length < 3 && tries < 50; tries++) {
      const answer = await caller.ask("POST", "/v2/p-video/run", visitor, photo).catch(brokenOff);
      if (answer) heard.push(answer);
    }
    expect(heard.map(({ status }) => status)).toEqual([429, 429, 429]);
    await unhurt.expect();
  });

  it("outlives a body in chunks beyond its limit", async () => {
    const chunks = async function* () {
      yield Buffer.from(`{"input":{"prompt":"a","pad":"`);
      for (const _ of times(12)) yield Buffer.alloc(1_000_000, "x");
      yield Buffer.from(`"}}`);
    };
    const refused = await caller.ask("POST", `/v2/${flux}/run`, user, chunks());
    expect(refused).toMatchObject({ status: 413, body: { code: "PAYLOAD_TOO_LARGE" } });
    await unhurt.expect();
  });

  it("outlives 100 held calls", async () => {
    const held = await Promise.all(times(100).map(hold));
    expect(held.filter((answer) => !isFine(answer))).toEqual([]);
    await unhurt.expect();
  });

  it("outlives a storm of 1,100 submits over 24 connections, and 300 held calls", async () => {
    const submits = await inParallel(times(1100), 24, () =>
      caller.ask("POST", `/v2/${waiting}/run`, user, `{"input":{}}`),
    );
    expect(submits.filter((answer) => !isFine(answer))).toEqual([]);
    const held = await Promise.all(times(300).map(hold));
    expect(held.filter((answer) => !isFine(answer))).toEqual([]);
    await caller.ask("POST", `/v2/${waiting}/purge-queue`, testSettings.ADMIN_TOKEN, "");
    if (round === 1) await unhurt.settle();
    await unhurt.expect();
  });
});
