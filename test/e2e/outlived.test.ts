// What once ended `npm start`, and a storm: the same processes serve afterwards. test/full does more of it, in rounds.
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { inParallel } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";
import { type Answer, Caller } from "./support/caller.ts";
import { describeOnce, inRounds, startByNpm } from "./support/gateway.ts";
import type { NpmStart } from "./support/npm-start.ts";
import type { Unhurt } from "./support/unhurt.ts";

const flux = "black-forest-labs-flux-1-schnell";
/** Endpoints without a worker: their jobs wait, and calls for them are held. A storm is shared, since each takes a thousand runs in ten seconds. */
const [waiting, other] = ["waiting", "waiting-too"];
const { heldMs, held, stormed, heldInStorm } = inRounds()
  ? { heldMs: 5000, held: 100, stormed: 1100, heldInStorm: 300 }
  : { heldMs: 1000, held: 30, stormed: 110, heldInStorm: 30 };

/** What workerd reserves for a storm grows by less with each one: after so many by hardly anything. */
const firstStorms = 5;

/** The flood shield lets a payer through a thousand times in ten seconds. */
const floodMs = 10_000;

let server: NpmStart;
let unhurt: Unhurt;
let visitor: string;
let user: string;
let friend: string;
let caller: Caller;

beforeAll(async () => {
  const settings = { ENDPOINTS: `${waiting},${other}` };
  ({ server, unhurt } = await startByNpm({ args: ["--plan", "anonymous"], settings }));
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

describeOnce((round) => {
  describe("npm start", () => {
    /** The first round says how much memory all of it takes. */
    const expectUnhurt = () => (inRounds() && round > 0 ? unhurt.expect() : unhurt.serves());

    it("outlives a client that leaves in an upload of 8 MB", async () => {
      const socket = connect(server.port, "127.0.0.1").on("error", () => {});
      const head = [`POST /v2/${flux}/run HTTP/1.1`, "Host: sluice", `Authorization: Bearer ${user}`];
      socket.write(`${[...head, "Content-Length: 8000000"].join("\r\n")}\r\n\r\n{"input":{"prompt":"a","pad":"`);
      await new Promise((resolve) => socket.write("x".repeat(3_000_000), resolve));
      socket.destroy();
      await expectUnhurt();
    });

    it("outlives photos of 3 MB that a plan refuses", async () => {
      const image = `data:image/png;base64,${"A".repeat(3_000_000)}`;
      const photo = JSON.stringify({ input: { prompt: "a", image } });
      for (const _ of times(3)) {
        expect((await caller.ask("POST", "/v2/p-video/run", visitor, photo)).status).toBe(429);
      }
      await expectUnhurt();
    });

    it("outlives a body in chunks beyond its limit", async () => {
      const chunks = async function* () {
        yield Buffer.from(`{"input":{"prompt":"a","pad":"`);
        for (const _ of times(12)) yield Buffer.alloc(1_000_000, "x");
        yield Buffer.from(`"}}`);
      };
      const refused = await caller.ask("POST", `/v2/${flux}/run`, user, chunks());
      expect(refused).toMatchObject({ status: 413, body: { code: "PAYLOAD_TOO_LARGE" } });
      await expectUnhurt();
    });

    it("outlives held calls", async () => {
      const answers = await Promise.all(times(held).map(hold));
      expect(answers.filter((answer) => !isFine(answer))).toEqual([]);
      await expectUnhurt();
    });

    it("outlives a storm of submits over 24 connections, and held calls", async () => {
      for (const n of times(inRounds() && round === 0 ? firstStorms : 1)) {
        if (n > 0) await new Promise((resolve) => setTimeout(resolve, floodMs));
        const submits = await inParallel(times(stormed), 24, (n) =>
          caller.ask("POST", `/v2/${n % 2 ? waiting : other}/run`, n % 2 ? user : friend, `{"input":{}}`),
        );
        expect(submits.filter(({ status }) => status !== 200)).toEqual([]);
        const answers = await Promise.all(times(heldInStorm).map(hold));
        expect(answers.filter((answer) => !isFine(answer))).toEqual([]);
        for (const name of [waiting, other]) {
          await caller.ask("POST", `/v2/${name}/purge-queue`, testSettings.ADMIN_TOKEN, "");
        }
      }
      await expectUnhurt();
    });
  });
});
