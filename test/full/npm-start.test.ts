// What once ended `npm start`, and more of it, three times each: the same processes serve afterwards.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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

beforeAll(async () => {
  server = await NpmStart.start({ args: ["--plan", "anonymous"], settings: { ENDPOINTS: waiting } });
  unhurt = new Unhurt(server);
  const opened = JSON.stringify({ passthrough: true, maxUsd: 0 });
  await ask("PUT", `/admin/models/${waiting}`, testSettings.ADMIN_TOKEN, opened);
  visitor = tokenOf(await ask("POST", "/sessions", "", "{}"));
  user = tokenOf(await ask("POST", "/tokens", testSettings.APP_SECRET, `{"user":"ada","plan":"unlimited"}`));
});
afterAll(() => server.stop());

interface Answer {
  readonly status: number;
  readonly body: { readonly token?: string; readonly status?: unknown; readonly code?: string };
}

const tokenOf = ({ body }: Answer) => body.token ?? "";

/** Every answer is JSON, and a refusal has the one shape. */
async function ask(method: string, path: string, token: string, body: BodyInit): Promise<Answer> {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(server.url + path, { method, headers, body, duplex: "half" } as RequestInit);
  const said = JSON.parse(await response.text());
  if (!response.ok) {
    expect(said).toMatchObject({ status: response.status, title: expect.any(String), requestId: expect.any(String) });
    expect(said).toMatchObject({ type: `urn:sluice:error:${said.code}`, error: said.detail });
  }
  return { status: response.status, body: said };
}

const hold = () => ask("POST", `/v2/${waiting}/runsync?wait=${heldMs}`, user, `{"input":{}}`);
const times = (count: number) => Array.from({ length: count }, (_, index) => index);

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
    for (const _ of times(3)) {
      const refused = await ask("POST", "/v2/p-video/run", visitor, JSON.stringify({ input: { prompt: "a", image } }));
      expect(refused.status).toBe(429);
    }
    await unhurt.expect();
  });

  it("outlives a body in chunks beyond its limit", async () => {
    const chunks = async function* () {
      yield Buffer.from(`{"input":{"prompt":"a","pad":"`);
      for (const _ of times(12)) yield Buffer.alloc(1_000_000, "x");
      yield Buffer.from(`"}}`);
    };
    const refused = await ask("POST", `/v2/${flux}/run`, user, chunks() as unknown as BodyInit);
    expect(refused).toMatchObject({ status: 413, body: { code: "PAYLOAD_TOO_LARGE" } });
    await unhurt.expect();
  });

  it("outlives 100 held calls", async () => {
    const held = await Promise.all(times(100).map(hold));
    expect(held.filter(({ status }) => status !== 200)).toEqual([]);
    await unhurt.expect();
  });

  it("outlives a storm of 1,100 submits over 24 connections, and 300 held calls", async () => {
    const submits = await inParallel(times(1100), 24, () => ask("POST", `/v2/${waiting}/run`, user, `{"input":{}}`));
    // What is more than a thousand in ten seconds, the flood shield refuses.
    expect(submits.filter(({ status, body }) => status !== 200 && body.code !== "RATE_LIMITED")).toEqual([]);
    const held = await Promise.all(times(300).map(hold));
    expect(held.filter(({ status, body }) => status !== 200 && body.code !== "RATE_LIMITED")).toEqual([]);
    await ask("POST", `/v2/${waiting}/purge-queue`, testSettings.ADMIN_TOKEN, "");
    if (round === 1) await unhurt.settle();
    await unhurt.expect();
  });
});
