// The signature of an upload's URL: for one owner, key, type and size, until a moment. It is all that a PUT has to show.
import type { Config } from "../../config.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../identity/signing.ts";

export interface PutTicket {
  readonly key: string;
  readonly type: string;
  readonly bytes: number;
  /** Until when the PUT may begin. */
  readonly until: number;
  /** Whose meter counts it, by its object's id: who pays is not to be read in an address. */
  readonly meter: string;
  /** The owner as the log may have it. */
  readonly ownerHash: string;
}

const patterns = {
  bytes: /^[1-9]\d{0,8}$/,
  until: /^\d{13}$/,
  meter: /^[0-9a-f]{64}$/,
  owner: /^[0-9a-f]{16}$/,
  signature: /^[0-9a-f]{32}$/,
} as const;
const names = Object.keys(patterns) as readonly (keyof typeof patterns)[];

export class PutTickets {
  readonly #keys: SigningKeys;

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  /** As the query of the upload's own address. */
  write(ticket: PutTicket): string {
    const { bytes, until, meter, ownerHash } = ticket;
    const [key] = this.#keys.of("upload");
    const signature = signFields(key, fieldsOf(ticket), 128);
    return new URLSearchParams({ bytes: `${bytes}`, until: `${until}`, meter, owner: ownerHash, signature }).toString();
  }

  /** Undefined for whatever was not written here. */
  read(key: string, type: string, query: URLSearchParams): PutTicket | undefined {
    if ([...query.keys()].length !== names.length) return undefined;
    const said = Object.fromEntries(query) as Partial<Record<keyof typeof patterns, string>>;
    if (!names.every((name) => patterns[name].test(said[name] ?? ""))) return undefined;
    const { bytes, until, meter = "", owner: ownerHash = "", signature = "" } = said;
    const ticket = { key, type, bytes: Number(bytes), until: Number(until), meter, ownerHash };
    const isOurs = this.#keys.of("upload").some((one) => sameMac(signature, signFields(one, fieldsOf(ticket), 128)));
    return isOurs ? ticket : undefined;
  }
}

function fieldsOf({ key, type, bytes, until, meter, ownerHash }: PutTicket): string[] {
  return ["put", ownerHash, meter, key, type, String(bytes), String(until)];
}

export const putTicketsOf = memoizeBy((config: Config) => new PutTickets(signingKeysOf(config)));
