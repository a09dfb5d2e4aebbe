// What a picture, and a page of the gallery, costs beside many that are kept.
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { type Growth, type GrowthEffort, type Holder, measureBySize, withHolders } from "./by-size.ts";
import { Payer } from "./payer.ts";

/** Those that are asked for, in turn; the gateway made them itself. */
const asked = 50;
const beside = "pictures that are kept";
const keysAtOnce = 10_000;

export function measureImages(upstream: WorkerdProcess, effort: GrowthEffort): Promise<Growth[]> {
  return withHolders(
    effort.sizes,
    (size) => Album.start(upstream, size),
    async (albums) => [
      await measureBySize({ what: "a picture", beside }, albums, effort, (album, calls) => album.retrieve(calls)),
      await measureBySize({ what: "a page of the gallery", beside }, albums, effort, (album, calls) =>
        album.leaf(calls),
      ),
    ],
  );
}

class Album implements Holder {
  readonly size: number;
  readonly #payer: Payer;
  readonly #keys: readonly string[];

  private constructor(size: number, payer: Payer, keys: readonly string[]) {
    this.size = size;
    this.#payer = payer;
    this.#keys = keys;
  }

  /** The cache is in memory and the gallery on the disk, so the cache is filled after the last restart. */
  static async start(upstream: WorkerdProcess, size: number): Promise<Album> {
    const { payer, past } = await Payer.withPast(upstream, size - asked);
    const keys = await payer.makePictures(asked);
    for (let from = 0; from < past.length; from += keysAtOnce) {
      const what = { like: keys[0], keys: past.slice(from, from + keysAtOnce) };
      await payer.ask("/bench/link", { method: "POST", body: JSON.stringify(what) });
    }
    return new Album(size, payer, keys);
  }

  get server() {
    return this.#payer.server;
  }

  async retrieve(calls: number): Promise<void> {
    for (let n = 0; n < calls; n++) {
      const response = await this.#payer.ask(`/images/${this.#keys[n % this.#keys.length]}`);
      await response.arrayBuffer();
    }
  }

  async leaf(calls: number): Promise<void> {
    for (let n = 0; n < calls; n++) {
      const keys = await this.#payer.pictures(pageSize);
      if (keys.length !== pageSize) throw new Error(`the gallery's first page has ${keys.length} pictures`);
    }
  }
}

const pageSize = 50;
