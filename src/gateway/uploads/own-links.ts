// The gateway's own links as inputs: told from foreign ones, and held to be what was handed out here.
import { type Config, ownOrigin } from "../../config.ts";
import { isPublicHost } from "../../http/webhook-target.ts";
import { linkOf } from "../media/links.ts";
import { type MediaKey, mediaKeysOf } from "../media/media-key.ts";
import { type UploadKey, uploadKeysOf, uploadLink } from "./upload-key.ts";

export type OwnLink = (
  | { readonly upload: UploadKey; readonly image?: never }
  | { readonly image: MediaKey; readonly upload?: never }
) & {
  /** As it is written for the outside. */
  readonly url: string;
};

/** Why a URL is no input, as the end of a sentence that begins with "the URL". */
export interface RefusedUrl {
  readonly refused: string;
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])$/;
const path = /^\/(uploads|images)\/([^/]+)$/;

export class OwnLinks {
  readonly #config: Config;
  readonly #requestUrl: string;
  readonly #origin: string;
  readonly #now: number;

  constructor(config: Config, requestUrl: string, now: number) {
    this.#config = config;
    this.#requestUrl = requestUrl;
    this.#origin = ownOrigin(config, requestUrl);
    this.#now = now;
  }

  /** Whether the model service can fetch what lies here. The platform beside the gateway can. */
  get areReachable(): boolean {
    if (this.#config.upstream.kind === "embedded") return true;
    const { protocol, hostname } = new URL(this.#origin);
    return protocol === "https:" && isPublicHost(hostname);
  }

  /** Undefined for a foreign URL that may be an input. */
  read(text: string): OwnLink | RefusedUrl | undefined {
    const url = URL.parse(text);
    if (!url) return { refused: "cannot be read" };
    // Parsers differ in what they make of it: one may read another host than the one that is judged here.
    if (text.includes("\\")) return { refused: "has a backslash" };
    return this.#isOwn(url) ? this.#readOwn(url) : refuseForeign(url);
  }

  #isOwn({ origin, hostname }: URL): boolean {
    if ([this.#requestUrl, this.#origin].some((own) => new URL(own).origin === origin)) return true;
    return this.#config.local && loopback.test(hostname);
  }

  #readOwn({ pathname, search }: URL): OwnLink | RefusedUrl {
    const [, room, name = ""] = path.exec(pathname) ?? [];
    if (search !== "") return { refused: "carries a query, which no link of an upload or a picture has" };
    if (room === "uploads") {
      const upload = uploadKeysOf(this.#config).read(name);
      return upload ? this.#unlessOver({ upload, url: uploadLink(this.#origin, name) }, upload.expiresAt) : unknown;
    }
    const image = mediaKeysOf(this.#config).read(name);
    return image && room === "images"
      ? this.#unlessOver({ image, url: linkOf(this.#origin, name) }, image.expiresAt)
      : unknown;
  }

  #unlessOver(link: OwnLink, expiresAt: number): OwnLink | RefusedUrl {
    return expiresAt > this.#now ? link : { refused: `expired at ${new Date(expiresAt).toISOString()}` };
  }
}

const unknown: RefusedUrl = { refused: "leads to no upload and no picture here" };

/** The model service fetches it, or not: private names mean something else to it. */
function refuseForeign({ protocol, hostname, username, password }: URL): RefusedUrl | undefined {
  if (protocol !== "https:") return { refused: "is not https" };
  if (username !== "" || password !== "") return { refused: "names a user or a password" };
  return isPublicHost(hostname) ? undefined : { refused: "is not on a public host" };
}
