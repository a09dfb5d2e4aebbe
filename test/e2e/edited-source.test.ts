// What an edit of the source means for the calls under way: they are cut, and their jobs go on.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/serve-eventually.ts";
import { NpmStart } from "./support/npm-start.ts";

const patienceMs = 60_000;
const flux = "/v2/black-forest-labs-flux-1-schnell";
let server: NpmStart;
beforeAll(async () => {
  server = await NpmStart.start({ settings: { SAMPLE_DELAY_MS: "20000" } });
});
afterAll(() => server.stop());

it("a held call breaks, and is found again by its key", async () => {
  const session = await fetch(`${server.url}/sessions`, { method: "POST", body: "{}" });
  const { token } = (await session.json()) as { token: string };
  const headers = { Authorization: `Bearer ${token}`, "Idempotency-Key": "one" };
  const body = JSON.stringify({ input: { prompt: "a lighthouse" } });
  const ask = async (wait: number) => {
    const response = await fetch(`${server.url}${flux}/runsync?wait=${wait}`, { method: "POST", headers, body });
    return (await response.json()) as { id: string; status: string };
  };
  const { id } = await ask(1000);
  const held = fetch(`${server.url}${flux}/status-sync/${id}?wait=60000`, { headers });
  const source = join(server.folder, "src/compose.ts");
  writeFileSync(source, readFileSync(source, "utf8").replace('{ status: "ok" }', '{ status: "ok", edited: true }'));
  await expect(held).rejects.toThrow();
  const again = await eventually("an answer of the new code", patienceMs, async () => ask(1000).catch(() => undefined));
  expect(again).toMatchObject({ id, status: expect.stringMatching(/^IN_/) });
  expect(await (await fetch(`${server.url}/healthz`)).json()).toEqual({ status: "ok", edited: true });
});
