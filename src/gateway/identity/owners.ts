// How owners are written, and what the app may call its users.
import { addressPayer, networkOf } from "./address.ts";

const maxUserLength = 256;
/** Control characters have no place in an id, a log or a header. */
const control = /\p{Cc}/u;

/** A lone surrogate would make two ids read alike once they are bytes. */
export function isUserId(id: unknown): id is string {
  return typeof id === "string" && id !== "" && id.length <= maxUserLength && id.isWellFormed() && !control.test(id);
}

export function userOwner(id: string): string {
  return `user:${id}`;
}

export function anonymousOwner(id: string): string {
  return `anon:${id}`;
}

export const anonymousOwnerPattern = /^anon:[0-9a-f]{32}$/;

/** What anonymous visitors of one network pay under together. */
export const addressPayerPattern = /^addr:[0-9a-f.:]{1,64}\/(32|64)$/;

/** How the operator's routes name a user: by the app's own id, or by an owner as the gateway writes it. */
export function readOwner(user: string): string {
  return /^(user|anon):/.test(user) ? user : userOwner(user);
}

/** Whose meter the operator's routes name so. Undefined for an anonymous visitor, whose address has the meter. */
export function readPayer(user: string): string | undefined {
  if (user.startsWith("addr:")) return readNetwork(user);
  const owner = readOwner(user);
  return owner.startsWith(anonymousOwner("")) ? undefined : owner;
}

/** `addr:2001:DB8:1::/48` in the one way that the gateway writes it; undefined for what has no meter. */
function readNetwork(user: string): string | undefined {
  const [, address = "", prefix] = /^addr:([0-9a-f.:]{1,64})\/(32|48|64)$/i.exec(user) ?? [];
  const payer = addressPayer(address);
  if (payer === undefined) return undefined;
  if (prefix === "48") return networkOf(payer);
  return payer.endsWith(`/${prefix}`) ? payer : undefined;
}

/** The meter of a /48, which counts for all the addresses in it. */
export function isNetworkPayer(payer: string): boolean {
  return /^addr:.*\/48$/.test(payer);
}
