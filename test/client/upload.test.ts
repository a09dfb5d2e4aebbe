// Files in an input: uploaded each, with progress, and replaced by their links.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSluice } from "../../src/client/index.ts";
import { broken, done, events, FakeGateway, json, type Route, refusal } from "./fake-gateway.ts";

/** A stand-in for the gateway's uploads: `POST /uploads {type, bytes, ttlSeconds?}`, then a PUT. */
function gatewayOf(put: Route = () => new Response(null, { status: 201 })): FakeGateway {
  let count = 0;
  const gateway: FakeGateway = new FakeGateway()
    .on(/POST \/uploads$/, ({ body }) => {
      const id = `u${++count}`;
      const { type } = body as { type: string };
      const headers = { "Content-Type": type };
      const expiresAt = "2031-06-16T12:00:00.000Z";
      return json({
        id,
        url: `${gateway.url}/uploads/${id}`,
        expiresAt,
        put: { url: `${gateway.url}/put/${id}`, headers },
      });
    })
    .on(/PUT \/put/, put)
    .on(/POST \/v2\/editor\/run$/, () => json({ id: "job-1", status: "IN_QUEUE" }))
    .on(/events/, () => events([done()]));
  return gateway;
}

const clientOf = (gateway: FakeGateway) => createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });
const png = () => new Blob(["picture"], { type: "image/png" });

describe("an input with files", () => {
  it("is submitted with their links, wherever they stand, and stays as it was given", async () => {
    const gateway = gatewayOf();
    const told: unknown[] = [];
    const input = {
      prompt: "a",
      image: png(),
      images: ["https://a.test/b.png", png()],
      loras: [{ path: "x", scale: 1 }],
      none: null,
    };
    const given = { ...input };
    const options = { onState: (state: string) => told.push(state), onUpload: (upload: object) => told.push(upload) };
    await clientOf(gateway).run("editor", input, options);
    const [{ body } = { body: undefined }] = gateway.calls(/run$/);
    expect(body).toEqual({
      input: {
        ...input,
        image: `${gateway.url}/uploads/u1`,
        images: ["https://a.test/b.png", `${gateway.url}/uploads/u2`],
      },
    });
    expect(input).toEqual(given);
    expect(gateway.calls(/POST \/uploads/).map(({ body }) => body)).toEqual([
      { type: "image/png", bytes: 7 },
      { type: "image/png", bytes: 7 },
    ]);
    const [first] = gateway.calls(/PUT/);
    expect(first?.headers.get("Content-Type")).toBe("image/png");
    expect(first?.headers.get("Authorization")).toBeNull();
    expect(told).toEqual([
      "uploading",
      { field: "image", sentBytes: 7, totalBytes: 7 },
      { field: "images.1", sentBytes: 7, totalBytes: 7 },
      "submitting",
    ]);
  });

  it("is not submitted where a file is refused, and the gateway says why", async () => {
    const gateway = gatewayOf(() => refusal(415, "UNSUPPORTED_MEDIA", "This is no picture."));
    const running = clientOf(gateway).run("editor", { image: png() });
    await expect(running).rejects.toMatchObject({
      code: "UNSUPPORTED_MEDIA",
      message: "This is no picture.",
      status: 415,
    });
    expect(gateway.calls(/run$/)).toEqual([]);
  });
});

describe("an upload", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  /** However long it waits in between. */
  const uploadedTo = async (gateway: FakeGateway) => {
    const all = Promise.allSettled([clientOf(gateway).upload(png())]);
    await vi.runAllTimersAsync();
    return (await all)[0];
  };

  it("is kept for as long as the caller says", async () => {
    const gateway = gatewayOf();
    const uploaded = await clientOf(gateway).upload(png(), { ttlSeconds: 3600 });
    expect(uploaded).toEqual({ id: "u1", url: `${gateway.url}/uploads/u1`, expiresAt: expect.any(String) });
    expect(gateway.seen[0]?.body).toEqual({ type: "image/png", bytes: 7, ttlSeconds: 3600 });
  });

  it("that broke is sent again, and is there where only its answer was lost", async () => {
    let tries = 0;
    const gateway = gatewayOf(() => (++tries === 1 ? broken() : refusal(409, "ALREADY_UPLOADED", "It is there.")));
    expect(await uploadedTo(gateway)).toMatchObject({ value: { id: "u1" } });
    expect(gateway.calls(/PUT/)).toHaveLength(2);
  });

  it("that the gateway cannot take now is sent again", async () => {
    let tries = 0;
    const away = () => refusal(503, "METER_UNAVAILABLE", "The meter is away.", { "Retry-After": "1" });
    const gateway = gatewayOf(() => (++tries < 3 ? away() : new Response(null, { status: 201 })));
    expect(await uploadedTo(gateway)).toMatchObject({ value: { id: "u1" } });
    expect(gateway.calls(/PUT/)).toHaveLength(3);
    expect(await uploadedTo(gatewayOf(away))).toMatchObject({ reason: { code: "METER_UNAVAILABLE" } });
  });

  it("that somebody else made is refused at the first try", async () => {
    const gateway = gatewayOf(() => refusal(409, "ALREADY_UPLOADED", "It is there."));
    await expect(clientOf(gateway).upload(png())).rejects.toMatchObject({ status: 409 });
  });

  it("is given up after three times", async () => {
    const gateway = gatewayOf(broken);
    expect(await uploadedTo(gateway)).toMatchObject({ reason: { code: "NETWORK" } });
    expect(gateway.calls(/PUT/)).toHaveLength(3);
  });
});
