// A body that is refused while its client still writes it: the client hears the refusal, whatever it has sent by then.
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testSettings } from "../support/settings.ts";
import { describeOnce, type Gateway, startGateway } from "./support/gateway.ts";

const photo = "A".repeat(3_000_000);
const chunk = "A".repeat(64 * 1024);
const flux = "/v2/black-forest-labs-flux-1-schnell/run";

let server: Gateway;
let token: string;
beforeAll(async () => {
  server = await startGateway({ ANONYMOUS: "open", SESSION_PLAN: "anonymous" });
  // All rounds together stay below any rate.
  const plan = await fetch(`${server.url}/admin/plans/anonymous`, {
    method: "PUT",
    headers: { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` },
    body: JSON.stringify({ rules: [{ unit: "usd", limit: 0, per: "day", models: ["video"] }] }),
  });
  expect(plan.status).toBe(200);
  const session = await fetch(`${server.url}/sessions`, { method: "POST", body: "{}" });
  ({ token } = (await session.json()) as { token: string });
});
afterAll(() => server.stop());

/** On a connection of its own, which is closed on whatever the server leaves unread. */
function send(path: string, bearer: string, pieces: readonly string[], length?: number): Promise<string> {
  const headers = {
    Authorization: `Bearer ${bearer}`,
    "Content-Type": "application/json",
    ...(length === undefined ? { "Transfer-Encoding": "chunked" } : { "Content-Length": length }),
  };
  return new Promise((resolve, reject) => {
    const upload = request(`${server.url}${path}`, { method: "POST", headers, agent: false }, async (answer) => {
      let text = "";
      for await (const part of answer) text += part;
      resolve(JSON.parse(text).code);
    });
    upload.on("error", reject);
    void write(upload, pieces);
  });
}

async function write(upload: ReturnType<typeof request>, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    if (!upload.write(piece)) await new Promise((resolve) => upload.once("drain", resolve));
  }
  upload.end();
}

const film = `{"input":{"prompt":"a lighthouse","image":"data:image/png;base64,${photo}"}}`;
const junk = ['{"input":{"prompt":"x","pad":"', ...Array.from({ length: 200 }, () => chunk), '"}}'];
const whole = (text: string) => [[text], Buffer.byteLength(text)] as const;

describeOnce(() => {
  describe.each([1, 2, 3])("try %i", () => {
    it.each([
      ["a photo beyond the plan", "QUOTA_EXCEEDED", "/v2/wan-2-6-i2v/run", (): string => token, whole(film)],
      ["a body in pieces beyond its limit", "PAYLOAD_TOO_LARGE", flux, (): string => token, [junk, undefined]],
      ["a photo of nobody", "UNAUTHORIZED", flux, (): string => "no-token", whole(film)],
      ["a photo for a model that is not there", "MODEL_NOT_FOUND", "/v2/nothing/run", (): string => token, whole(film)],
      [
        "a body beyond its limit by its head",
        "PAYLOAD_TOO_LARGE",
        flux,
        (): string => token,
        whole("A".repeat(12_000_000)),
      ],
      ["a large body where a small one is due", "PAYLOAD_TOO_LARGE", "/sessions", (): string => "", whole(photo)],
    ] as const)("%s is told %s", async (_, code, path, bearer, [pieces, length]) => {
      expect(await send(path, bearer(), pieces, length)).toBe(code);
    });
  });
});
