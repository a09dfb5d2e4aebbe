// Links as inputs: our own are read by every model, wherever the gateway runs; foreign ones are public https.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { models } from "../../../src/models/index.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { jpeg, origin, Uploader } from "./uploader.ts";

const service = { UPSTREAM_URL: "https://models.example.com", UPSTREAM_API_KEY: "key-of-the-service-0123456789" };
const edit = "/v2/qwen-image-edit/run";
const picture = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Array<number>(300).fill(9)]);

/** What the model service was sent. */
let bodies: { input: Record<string, unknown> }[];
let token: string;
/** On a developer's machine: the model service cannot reach it. */
let local: Uploader;
/** Deployed where everybody can reach it. */
let open: Uploader;
/** How the picture that a job ended with is served, by its own server. */
let served: () => Response;

beforeEach(async () => {
  bodies = [];
  served = () => new Response(picture, { headers: { "Content-Length": String(picture.byteLength) } });
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    if (!request.url.startsWith(service.UPSTREAM_URL)) return served();
    const { pathname } = new URL(request.url);
    bodies.push(await request.json());
    const id = `job-${bodies.length}`;
    if (pathname.endsWith("/run")) return Response.json({ id, status: "IN_QUEUE" });
    const output = { image_url: "https://cdn.example.net/a.png", cost: 0.01 };
    return Response.json({ id, status: "COMPLETED", output });
  });
  local = new Uploader(service);
  open = new Uploader({ ...service, PUBLIC_URL: "https://gateway.example.com" });
  token = await local.token("ada");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

const run = (user: Uploader, input: object, path = edit) => user.ask("POST", path, { token, json: { input } });
const dataUrl = (type: string, bytes: Uint8Array) => `data:${type};base64,${bytes.toBase64()}`;
const sentInput = () => bodies.at(-1)?.input ?? {};

describe("the catalog", () => {
  it("says of every model which of its members are files, and of what kind", async () => {
    const told = new Map<string, string>();
    const { models: listed } = await (await local.ask("GET", "/models")).json<{
      models: { id: string; input: { properties: Record<string, Record<string, unknown>> } }[];
    }>();
    for (const { id, input } of listed) {
      for (const [name, member] of Object.entries(input.properties)) {
        if (member["x-media"]) told.set(`${id}.${name}`, String(member["x-media"]));
        const looksLikeOne = /^(images?|last_image|video|audio|voice_url|default_audio_url)$/.test(name);
        expect([id, name, member["x-media"] !== undefined]).toEqual([id, name, looksLikeOne]);
      }
    }
    expect(listed.filter(({ id }) => [...told.keys()].some((key) => key.startsWith(`${id}.`)))).toHaveLength(27);
    expect(Object.fromEntries([...told].map(([key, kind]) => [key.split(".")[1], kind]))).toEqual({
      image: "image",
      images: "image",
      last_image: "image",
      video: "video",
      audio: "audio",
      voice_url: "audio",
      default_audio_url: "audio",
    });
    expect(models.find(({ id }) => id === "nano-banana-edit")?.media.get("images")).toBe("image");
  });
});

describe("an upload as input, where the model service cannot reach the gateway", () => {
  it("goes in as a data URL", async () => {
    const file = jpeg(100_001);
    const { url } = await local.uploaded(token, file);
    expect((await run(local, { prompt: 'a "lake"', image: url, size: "1024*1024" })).status).toBe(200);
    expect(sentInput()).toMatchObject({ prompt: 'a "lake"', size: "1024*1024" });
    expect(sentInput()["image"]).toBe(dataUrl("image/jpeg", file));
  });

  it("in each place of a list, among what stands there already", async () => {
    const files = [jpeg(1000), jpeg(1001), jpeg(1002)];
    const links = await Promise.all(files.map(async (file) => (await local.uploaded(token, file)).url));
    const given = [links[1], "https://cdn.example.net/b.png", links[0], dataUrl("image/png", picture), links[2]];
    expect((await run(local, { prompt: "x", images: given }, "/v2/nano-banana-pro-edit/run")).status).toBe(200);
    const [one, two, three] = files.map((file) => dataUrl("image/jpeg", file));
    expect(sentInput()["images"]).toEqual([
      two,
      "https://cdn.example.net/b.png",
      one,
      dataUrl("image/png", picture),
      three,
    ]);
  });

  it("under every name of the machine that it runs on", async () => {
    const { id } = await local.uploaded(token);
    for (const host of ["http://localhost:8787", "http://127.0.0.1:8787", "http://[::1]:8787", origin]) {
      const input = { prompt: "x", image: `${host}/uploads/${id}` };
      expect((await run(local, input)).status).toBe(200);
      expect(sentInput()["image"]).toBe(dataUrl("image/jpeg", jpeg(1000)));
    }
  });

  it("is refused where it makes the request larger than a job may be, and nothing is sent", async () => {
    const { url } = await local.uploaded(token, jpeg(8 * 1024 * 1024));
    const refused = await expectProblem(await run(local, { prompt: "x", image: url }), "INVALID_REQUEST");
    expect(refused["detail"]).toMatch(
      /^input\.image: the model service cannot reach this gateway.*larger than 10485760/,
    );
    const path = "/v2/qwen-image-edit/runsync";
    expect((await run(local, { prompt: "x", image: url }, path)).status).toBe(200);
    expect((await run(local, { prompt: "x", image: url, seed: 7 }, path)).status).toBe(200);
    expect(bodies).toHaveLength(2);
  });

  it("is refused where its file is gone, and costs nothing", async () => {
    const { url } = await local.uploaded(token);
    await local.ask("DELETE", url, { token });
    const refused = await expectProblem(await run(local, { prompt: "x", image: url }), "INVALID_REQUEST");
    expect(refused["detail"]).toBe("input.image: there is no such file any more");
    expect(bodies).toEqual([]);
    const { jobs } = await (await local.ask("GET", "/usage", { token })).json<{ jobs: object[] }>();
    expect(jobs).toEqual([]);
  });

  it("is refused in a body that is too large to be read whole", async () => {
    const { url } = await local.uploaded(token);
    const input = { image: url, prompt: "x", mask: "A".repeat(300_000) };
    const refused = await expectProblem(await run(local, input), "INVALID_REQUEST");
    expect(refused["detail"]).toMatch(/^input\.image: the model service cannot read this link/);
  });
});

describe("a picture of the gateway's as input", () => {
  const paint = async (user: Uploader): Promise<string> => {
    const job = await run(user, { prompt: "a lake" }, "/v2/black-forest-labs-flux-1-schnell/runsync");
    const { output } = await job.json<{ output: { image_url: string } }>();
    expect(output.image_url).toMatch(/\/images\//);
    return output.image_url;
  };

  it("goes in as a data URL where the model service cannot reach the gateway", async () => {
    expect((await run(local, { prompt: "x", image: await paint(local) })).status).toBe(200);
    expect(sentInput()["image"]).toBe(dataUrl("image/png", picture));
  });

  it("also where its source does not say its size", async () => {
    const link = await paint(local);
    served = () => new Response(new Blob([picture]).stream());
    expect((await run(local, { prompt: "x", image: link })).status).toBe(200);
    expect(sentInput()["image"]).toBe(dataUrl("image/png", picture));
  });

  it("stays a link where the model service can", async () => {
    const link = await paint(open);
    expect((await run(open, { prompt: "x", image: link })).status).toBe(200);
    expect(sentInput()["image"]).toBe(link);
  });
});

describe("an upload as input, where the model service can reach the gateway", () => {
  it("stays a link, in the spelling of the outside", async () => {
    const { id, url } = await open.uploaded(token);
    expect(url).toBe(`https://gateway.example.com/uploads/${id}`);
    for (const host of ["https://gateway.example.com", "http://localhost:8787", origin]) {
      expect((await run(open, { prompt: "x", image: `${host}/uploads/${id}` })).status).toBe(200);
      expect(sentInput()["image"]).toBe(url);
    }
  });
});

describe("a URL", () => {
  const refused: [url: string, reason: RegExp][] = [
    ["http://cdn.example.net/a.png", /is not https$/],
    ["https://10.0.0.1/a.png", /is not on a public host$/],
    ["https://2130706433/a.png", /public host$|no upload/],
    ["https://intranet/a.png", /is not on a public host$/],
    ["https://files.internal/a.png", /is not on a public host$/],
    ["https://me:secret@cdn.example.net/a.png", /names a user or a password$/],
    ["https://cdn.example.net\\@169.254.169.254/a.png", /has a backslash$/],
    ["https://", /cannot be read$|expected a public/],
    [`${origin}/uploads/nothing`, /leads to no upload and no picture here$/],
    [`${origin}/admin/plans/free`, /leads to no upload and no picture here$/],
    [`${origin}/images/${"0".repeat(32)}-i0mwtijrar-0123456789abcdef`, /leads to no upload and no picture here$/],
    ["http://localhost:8787/platform/media/a.png", /leads to no upload and no picture here$/],
    ["ftp://cdn.example.net/a.png", /expected a public https URL, a link of an upload or a picture/],
    ["javascript:alert(1)", /expected a public https URL/],
  ];

  it.each(refused)("is refused in one clear sentence: %s", async (url, reason) => {
    expect((await run(local, { prompt: "x", image: "https://cdn.example.net/a.png" })).status).toBe(200);
    const { detail } = await expectProblem(await run(local, { prompt: "x", image: url }), "INVALID_REQUEST");
    expect(detail).toMatch(/^input\.image: /);
    expect(detail).toMatch(reason);
    expect(bodies).toHaveLength(1);
  });

  it("of ours that carries a query, or is over, is refused", async () => {
    const { url, put } = await local.uploaded(token, jpeg(1000), { ttlSeconds: 60 });
    const signed = await expectProblem(await run(local, { prompt: "x", image: put.url }), "INVALID_REQUEST");
    expect(signed["detail"]).toMatch(/carries a query/);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    const over = await expectProblem(await run(local, { prompt: "x", image: url }), "INVALID_REQUEST");
    expect(over["detail"]).toMatch(/the URL expired at/);
    vi.useRealTimers();
  });

  it("stays as it is in members that are no files", async () => {
    const prompt = `${origin}/uploads/nothing`;
    expect((await run(local, { prompt, image: "https://cdn.example.net/a.png" })).status).toBe(200);
    expect(sentInput()["prompt"]).toBe(prompt);
  });
});
