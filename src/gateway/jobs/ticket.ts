// Tickets: a URL that opens one job's events without a header, since EventSource cannot send one.
import type { Config } from "../../config.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../identity/signing.ts";

/** A ticket can be used to connect for `connectMs`. A client that did may reconnect for `reconnectMs` more. */
const connectMs = 60_000;
const reconnectMs = 60 * 60_000;
const pattern = /^([A-Za-z0-9_-]{1,4096})\.(\d{13})\.([0-9a-f]{32})$/;

/** Whose events they are, and what is revoked with the token that it was made with. */
export interface Ticket {
  readonly owner: string;
  readonly payer: string;
  readonly issuedAt: number;
  readonly tokenId?: string;
  /** When that token ends. */
  readonly expiresAt?: number;
}

/** The last is missing where the release before made the ticket. */
type Holder = [owner: string, payer: string, issuedAt: number, tokenId: string | null, tokensEnd?: number | null];

export class Tickets {
  readonly #keys: SigningKeys;

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  mint({ owner, payer, issuedAt, tokenId, expiresAt: tokensEnd }: Ticket, path: string, now: number) {
    const [key] = this.#keys.of("ticket");
    const expiresAt = Math.floor(Math.min(now + connectMs, tokensEnd ?? Number.POSITIVE_INFINITY));
    const named: Holder = [owner, payer, issuedAt, tokenId ?? null, tokensEnd ?? null];
    const holder = encodeText(JSON.stringify(named));
    const mac = signFields(key, [holder, String(expiresAt), path], 128);
    return { ticket: `${holder}.${expiresAt}.${mac}`, expiresAt };
  }

  /** Undefined if the ticket does not open this path now. */
  open(text: string, path: string, lastEventId: string | undefined, now: number): Ticket | undefined {
    const [, holder, expiry, mac] = pattern.exec(text) ?? [];
    if (holder === undefined || expiry === undefined || mac === undefined) return undefined;
    for (const key of this.#keys.of("ticket")) {
      if (!sameMac(mac, signFields(key, [holder, expiry, path], 128))) continue;
      const late = Number(expiry) < now;
      if (late && !(Number(expiry) + reconnectMs > now && this.isEventId(lastEventId, path))) return undefined;
      const [owner, payer, issuedAt, tokenId, tokensEnd] = JSON.parse(decodeText(holder)) as Holder;
      if (tokensEnd != null && tokensEnd <= now) return undefined;
      return { owner, payer, issuedAt, ...(tokenId !== null && { tokenId }) };
    }
    return undefined;
  }

  /** Sent as the `id` of every event. A client that sends it back as `Last-Event-ID` was connected before. */
  eventId(path: string): string {
    const [key] = this.#keys.of("ticket");
    return signFields(key, ["event", path], 128);
  }

  isEventId(id: string | undefined, path: string): boolean {
    return id !== undefined && sameMac(id, this.eventId(path));
  }
}

export const ticketsOf = memoizeBy((config: Config) => new Tickets(signingKeysOf(config)));

function encodeText(text: string): string {
  const binary = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function decodeText(text: string): string {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
}
