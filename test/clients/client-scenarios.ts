// What the client must do in every world. Each is run in Node as it stands, and in a page by its text: so it may use
// nothing of this module but types.
import type { createSluice as open } from "../../src/client/index.ts";

export interface World {
  readonly createSluice: typeof open;
  readonly url: string;
  /** The same gateway, through a network that loses answers and cuts events. */
  readonly brokenUrl: string;
  /** For one user, whom nobody has seen before. */
  readonly mint: (terms: object) => Promise<{ token: string; expiresAt: string }>;
}

export const makesEveryKind = async ({ createSluice, url, mint }: World) => {
  const sluice = createSluice({ url, token: () => mint({}) });
  const [picture, film, voice, text] = await Promise.all([
    sluice.run("black-forest-labs-flux-1-schnell", { prompt: "a", width: 256, height: 256 }),
    sluice.run("wan-2-6-t2v", { prompt: "a" }),
    sluice.run("chatterbox-turbo", { prompt: "a" }),
    sluice.run("gpt-oss-120b", { prompt: "a lighthouse" }),
  ]);
  const typeOf = async (link: string) =>
    (await fetch(link).catch(() => fetch(link))).headers.get("Content-Type")?.split("/")[0];
  return {
    made: await Promise.all([picture.output.image_url, film.output.video_url, voice.output.audio_url].map(typeOf)),
    text: text.output[0]?.choices[0]?.tokens.join(""),
    areCharged: [picture, film, voice, text].every(({ cost = 0 }) => cost > 0),
  };
};

export const filmsAnUpload = async ({ createSluice, url, mint }: World) => {
  const sluice = createSluice({ url, token: () => mint({}) });
  const { output } = await sluice.run("black-forest-labs-flux-1-schnell", { prompt: "a", width: 256, height: 256 });
  // A connection that rested may be closed just as it is used again.
  const picture = await fetch(output.image_url).catch(() => fetch(output.image_url));
  const image = new File([await picture.blob()], "a.jpg", { type: "image/jpeg" });
  const told: unknown[] = [];
  const edited = await sluice.subscribe(
    "qwen-image-edit",
    { prompt: "the same at night", image },
    { onState: (state) => told.push(state), onUpload: ({ field, sentBytes }) => told.push([field, sentBytes]) },
  );
  const i2v = { prompt: "waves", image: edited.output.image_url, duration: 5 } as const;
  const film = await sluice.run("wan-2-6-i2v", i2v);
  const { usd } = await sluice.estimate("wan-2-6-i2v", { ...i2v, image });
  return { size: image.size, told, film: film.output.video_url, cost: film.cost, estimated: usd };
};

/** How often a token was asked for: the first one ends in the middle of jobs, the next one does not. */
export const renewsItsToken = async ({ createSluice, url, mint }: World, doesSay: boolean) => {
  let asked = 0;
  const first = await mint({ ttlSeconds: 3 });
  const endsAt = Date.parse(first.expiresAt);
  const sluice = createSluice({
    url,
    token: async () => {
      if (++asked > 1) return mint({});
      // What does not say its end is refused by the gateway first, as it is where this machine's clock is wrong.
      return doesSay ? first : { token: first.token, expiresAt: "2099-01-01T00:00:00.000Z" };
    },
  });
  const jobs = Promise.all([1, 2].map((n) => sluice.run("storyteller", { n, beats: 8 })));
  await new Promise((resolve) => setTimeout(resolve, endsAt + 100 - Date.now()));
  await Promise.all(Array.from({ length: 10 }, () => sluice.usage()));
  return { asked, ended: (await jobs).map(({ status }) => status) };
};

export const runsManyAtOnce = async ({ createSluice, url, mint }: World, count: number) => {
  const sluice = createSluice({ url, token: () => mint({}) });
  const all = Array.from({ length: count }, (_, n) => sluice.run("wan-2-6-t2v", { prompt: "a", seed: n }));
  return new Set((await Promise.all(all)).map(({ output }) => output.video_url)).size;
};

/** The user has one place: the next job is proof that it is free. */
export const abandons = async ({ createSluice, url, mint }: World, at: string) => {
  const left = new AbortController();
  const { signal } = left;
  const sluice = createSluice({
    url,
    token: () => mint({ rules: [{ unit: "jobs", limit: 1 }] }),
    fetch: (url, init) => {
      const answer = fetch(url, init);
      // It was sent, and its answer is still on the way.
      if (at === "submitting" && url.endsWith("/run")) left.abort();
      return answer;
    },
  });
  const onState = (state: string) => {
    if (at !== "submitting" && state === at) left.abort();
  };
  const listeners = { signal, onState };
  const run = async () => {
    if (at === "uploading") {
      return sluice.subscribe(
        "qwen-image-edit",
        { prompt: "a", image: new Blob(["a"], { type: "image/png" }) },
        listeners,
      );
    }
    if (at === "IN_QUEUE") return sluice.subscribe("waiting-room", {}, listeners);
    if (at !== "streaming") return sluice.subscribe("wan-2-6-t2v", { prompt: "a [slow]" }, listeners);
    for await (const _ of sluice.stream("storyteller", { beats: 40 }, listeners)) break;
    throw new DOMException("The loop was left.", "AbortError");
  };
  const thrown = await run().then(
    () => "nothing",
    ({ name }: Error) => name,
  );
  // It is abandoned already; nothing comes of it.
  left.abort();
  const next = await sluice.run("wan-2-6-t2v", { prompt: "the next" });
  const { jobs } = await sluice.usage();
  return { thrown, next: next.status, jobs: jobs.map(({ status }) => status) };
};

/** Each answer is lost once, that of the submission too. */
export const losesAnswers = async ({ createSluice, brokenUrl, mint }: World) => {
  const sluice = createSluice({ url: brokenUrl, token: () => mint({}) });
  const { status } = await sluice.run("wan-2-6-t2v", { prompt: "an answer that is lost" });
  const { jobs } = await sluice.usage();
  return { status, jobs: jobs.map(({ status }) => status) };
};

/** The worker tells chunks to three streams: the first two are cut, and of the second one a chunk is lost. */
export const hearsThroughCuts = async ({ createSluice, brokenUrl, mint }: World) => {
  const sluice = createSluice({ url: brokenUrl, token: () => mint({}) });
  const heard: unknown[] = [];
  const listeners = { onChunk: (chunk: unknown) => heard.push(chunk), onGap: () => heard.push("gap") };
  const { output } = await sluice.subscribe("storyteller", { streams: 3 }, listeners);
  return { heard, chunks: (output as { chunks: number[] }).chunks };
};

/** The worker goes on until nobody listens any more. */
export const hearsOfProgress = async ({ createSluice, url, mint }: World) => {
  const sluice = createSluice({ url, token: () => mint({}) });
  const left = new AbortController();
  const heard: unknown[] = [];
  const onProgress = (progress: unknown) => heard.push(progress) === 2 && left.abort();
  const running = sluice.subscribe("storyteller", { percents: 100 }, { onProgress, signal: left.signal });
  await running.catch(() => {});
  return heard.map((progress) => (progress as { percent: number }).percent);
};
