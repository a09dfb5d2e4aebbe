// What once ended `npm start`, and more of it, three times each: the same processes serve afterwards.
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, Caller } from "../e2e/support/caller.ts";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { Unhurt } from "../e2e/support/unhurt.ts";
import { inParallel } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";

const flux = "black-forest-labs-flux-1-schnell";
/** Endpoints without a worker: their jobs wait, and calls for them are held. A storm is shared, since each takes a thousand runs in ten seconds. */
const [waiting, other] = ["waiting", "waiting-too"];
const heldMs = 5000;
const rounds = [1, 2, 3];

let server: NpmStart;
let unhurt: Unhurt;
let visitor: string;
let user: string;
/** The flood shield lets a payer through a thousand times in ten seconds. */
let friend: string;
let caller: Caller;

beforeAll(async () => {
  server = await NpmStart.start({ args: ["--plan", "anonymous"], settings: { ENDPOINTS: `${waiting},${other}` } });
  unhurt = new Unhurt(server);
  caller = new Caller(server.url);
  const opened = JSON.stringify({ passthrough: true, maxUsd: 0 });
  for (const name of [waiting, other])
    await caller.ask("PUT", `/admin/models/${name}`, testSettings.ADMIN_TOKEN, opened);
  visitor = tokenOf(await caller.ask("POST", "/sessions", "", "{}"));
  user = await mint("ada");
  friend = await mint("bob");
});
afterAll(() => server.stop());

const mint = async (user: string) =>
  tokenOf(await caller.ask("POST", "/tokens", testSettings.APP_SECRET, JSON.stringify({ user, plan: "unlimited" })));
const tokenOf = ({ body }: Answer) => body.token ?? "";
const hold = () => caller.ask("POST", `/v2/${waiting}/runsync?wait=${heldMs}`, user, `{"input":{}}`);
const times = (count: number) => Array.from({ length: count }, (_, index) => index);

/** A call that is held may come too late where the machine is busy. */
const isFine = ({ status, body }: Answer) => status === 200 || body.code === "UPSTREAM_TIMEOUT";

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
    for (const _ of times(3)) {
      expect((await caller.ask("POST", "/v2/p-video/run", visitor, photo)).status).toBe(429);
    }
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
    const submits = await inParallel(times(1100), 24, (n) =>
      caller.ask("POST", `/v2/${n % 2 ? waiting : other}/run`, n % 2 ? user : friend, `{"input":{}}`),
    );
    expect(submits.filter(({ status }) => status !== 200)).toEqual([]);
    const held = await Promise.all(times(300).map(hold));
    expect(held.filter((answer) => !isFine(answer))).toEqual([]);
    for (const name of [waiting, other]) {
      await caller.ask("POST", `/v2/${name}/purge-queue`, testSettings.ADMIN_TOKEN, "");
    }
    if (round === 1) await unhurt.settle();
    await unhurt.expect();
  });
});
