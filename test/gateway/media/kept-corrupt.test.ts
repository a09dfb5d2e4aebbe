// What is read back from KV is checked: what is no entry of this version's is none, and never an error of ours nor half an answer.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../../src/contract/limits.ts";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { keepAnswer, repeatAnswer } from "../../../src/gateway/jobs/kept-answer.ts";
import { mediaKeysOf } from "../../../src/gateway/media/media-key.ts";
import { configOf } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { kept, model, origin, Studio, World } from "./studio.ts";

let world: World;
let studio: Studio;
let token: string;
beforeEach(async () => {
  world = new World();
  studio = new Studio();
  token = await studio.token("ada");
});
afterEach(emptyStorage);

const corrupt: [what: string, text: (whole: string) => string][] = [
  ["empty", () => ""],
  ["null", () => "null"],
  ["truncated", (whole) => whole.slice(0, -9)],
  ["a number", () => "5"],
  ["a list", () => "[]"],
  ["of no shape", () => "{}"],
  ["a newer version's", (whole) => JSON.stringify({ version: 2, entry: JSON.parse(whole) })],
];

describe("fault L1: a kept result", () => {
  const whole = JSON.stringify({ id: "x", status: "COMPLETED", output: { note: "made", cost: 0.002 } });
  /** Of a job that the model service has forgotten. */
  const status = async (entry: string) => {
    const { id } = await (await studio.paint(token, { operation: "run", input: { seed: -1 } })).json<{ id: string }>();
    const [ref = "", admission = ""] = id.split(".");
    world.forgets(ref);
    await env.IMAGES.put(`result/${admission}`, entry);
    return { response: await studio.ask(`/v2/${model}/status/${id}`, token), id };
  };

  it("is answered where it is whole", async () => {
    const { response, id } = await status(whole);
    expect(await response.json()).toMatchObject({ id, status: "COMPLETED", output: { note: "made" } });
  });

  it.each([
    ...corrupt,
    ["of a job that goes on", () => whole.replace("COMPLETED", "IN_PROGRESS")] as const,
    ["of an unknown state", () => whole.replace("COMPLETED", "DONE")] as const,
    ["with a status of another type", () => whole.replace(/"COMPLETED"/, "7")] as const,
  ])("is none where it is %s", async (_, text) => {
    const { response } = await status(text(whole));
    await expectProblem(response, "JOB_NOT_FOUND");
  });
});

describe("fault L1: a kept answer of an idempotency key", () => {
  const bytes = new TextEncoder().encode('{"choices":[]}');
  const contentType = "application/json";
  const long = Date.now() + 24 * 60 * 60_000;
  const repeated = async (value: Uint8Array | string, metadata: object) => {
    const admission = newAdmission(Date.now());
    await env.IMAGES.put(`answer/${admission}`, value, { metadata });
    return repeatAnswer(env.IMAGES, { admission }, long).then(
      (response) => response.text(),
      (problem: { code?: string }) => problem.code,
    );
  };

  it("is given where it is whole, as this version and the last one kept it", async () => {
    const admission = newAdmission(Date.now());
    await keepAnswer(env.IMAGES, admission, { status: 200, contentType, bytes });
    const response = await repeatAnswer(env.IMAGES, { admission }, long);
    expect([response.status, await response.text()]).toEqual([200, '{"choices":[]}']);
    expect(await repeated(bytes, { status: 200, contentType })).toBe('{"choices":[]}');
  });

  const size = bytes.byteLength;
  it.each<[string, Uint8Array | string, object]>([
    ["empty", "", { status: 200, contentType, size }],
    ["empty, and as the last version kept it", "", { status: 200, contentType }],
    ["truncated", bytes.subarray(0, 5), { status: 200, contentType, size }],
    ["of no status that there is", bytes, { status: 7, contentType, size }],
    ["of a status of another type", bytes, { status: "200", contentType, size }],
    ["of a type that cannot be", bytes, { status: 200, contentType: "a\nb", size }],
    ["of a type that is none", bytes, { status: 200, contentType: 5, size }],
    ["a newer version's", bytes, { version: 2 }],
  ])("is none where it is %s", async (_, value, metadata) => {
    expect(await repeated(value, metadata)).toBe("ANSWER_NOT_KEPT");
  });

  it("that cannot be read at the moment is asked for again", async () => {
    const away = { getWithMetadata: () => Promise.reject(new Error("away")) } as unknown as KVNamespace;
    const asked = repeatAnswer(away, { admission: newAdmission(Date.now()) }, Date.now());
    await expect(asked).rejects.toMatchObject({ code: "UNAVAILABLE", headers: { "Retry-After": "1" } });
  });
});

describe("fault L1: an entry of pictures", () => {
  it.each([
    ...corrupt,
    [
      "of a moment that no date has",
      (whole: string) => whole.replace(/"expiresAt":\d+/, '"expiresAt":9007199254740991'),
    ],
  ] as const)("that is %s is none: a link's is asked of its object", async (_, text) => {
    const { path } = await studio.link(token);
    const key = `media/${path.split("/").at(-1)}`;
    const whole = (await env.IMAGES.get(key)) ?? "{}";
    await env.IMAGES.put(key, text(whole));
    expect((await new Studio().ask(path, undefined)).status).toBe(200);
    const orphan = mediaKeysOf(configOf()).mint("0".repeat(32), "image_url", Date.now() + limits.mediaLifetimeMs);
    await env.IMAGES.put(`media/${orphan}`, text(whole));
    await expectProblem(await new Studio().ask(`/images/${orphan}`, undefined), "NOT_FOUND");
  });

  it.each([
    ...corrupt,
    ["of a key that is none", (whole: string) => whole.replace(/"key":"[^"]+"/, '"key":"x"')],
    [
      "of a moment that no date has",
      (whole: string) => whole.replace(/"expiresAt":\d+/, '"expiresAt":9007199254740991'),
    ],
  ] as const)("that is %s is none: the same request is answered by the model", async (_, text) => {
    await studio.link(token);
    const [{ name } = { name: "" }] = await kept("reuse/");
    await env.IMAGES.put(name, text((await env.IMAGES.get(name)) ?? "{}"));
    const elsewhere = new Studio({ SHARED_REQUEST: { getByName: () => ({ board: gone, leave: gone }) } });
    const response = await elsewhere.paint(token);
    expect([response.status, response.headers.get("X-Cache")]).toEqual([200, "MISS"]);
  });

  it.each(["", "null", "maybe", '"removed'])("that says %j of an own link says nothing", async (state) => {
    const at = new Studio({ REUSE_SCOPE: "shared" });
    await at.link(token);
    const bob = await at.token("bob");
    const { path } = await at.link(bob);
    await env.IMAGES.put(`link/${path.split("/").at(-1)}`, state);
    const again = await new Studio({ REUSE_SCOPE: "shared" }).paint(bob);
    expect([again.status, again.headers.get("X-Cache")]).toEqual([200, "HIT"]);
    const { output } = await again.json<{ output: { image_url: string } }>();
    expect(output.image_url).toBe(origin + path);
  });
});
const gone = () => Promise.reject(new Error("gone"));
