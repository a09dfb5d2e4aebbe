// Where an anonymous visitor pays: the network that the request came from.

/** `addr:203.0.113.7/32`, or the /64 of an IPv6 address, since a household has that many. Undefined for no address. */
export function addressPayer(address: string): string | undefined {
  const ipv4 = readIpv4(address);
  if (ipv4) return `addr:${ipv4.join(".")}/32`;
  const groups = readIpv6(address);
  if (!groups) return undefined;
  const mapped = mappedIpv4(groups);
  if (mapped) return `addr:${mapped.join(".")}/32`;
  const prefix = groups.slice(0, 4).map((group) => group.toString(16));
  return `addr:${prefix.join(":")}::/64`;
}

/** `addr:2001:db8:1::/48` of a /64 in it: many households, or one that was given them all. Undefined for IPv4. */
export function networkOf(payer: string): string | undefined {
  const [, prefix] = /^addr:((?:[0-9a-f]{1,4}:){2}[0-9a-f]{1,4}):[0-9a-f]{1,4}::\/64$/.exec(payer) ?? [];
  return prefix === undefined ? undefined : `addr:${prefix}::/48`;
}

export const addressPayerPattern = /^addr:[0-9a-f.:]{1,64}\/(32|64)$/;

function readIpv4(text: string): number[] | undefined {
  const octets = text.split(".");
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9]\d{0,2})$/.test(octet))) return undefined;
  const numbers = octets.map(Number);
  return numbers.every((octet) => octet <= 255) ? numbers : undefined;
}

/** Eight groups; undefined where it is no IPv6 address. A zone (`%eth0`) has no meaning to anyone else. */
function readIpv6(text: string): number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2 || text.length > 45) return undefined;
  const [head, tail] = halves.map(readGroups);
  if (!head || (halves.length === 2 && !tail)) return undefined;
  if (!tail) return head.length === 8 ? head : undefined;
  const missing = 8 - head.length - tail.length;
  return missing < 1 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function readGroups(text: string): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const ipv4 = readIpv4(parts.at(-1) ?? "");
  if (ipv4) parts.splice(-1, 1, ...pairs(ipv4));
  return parts.every((part) => /^[0-9a-f]{1,4}$/i.test(part))
    ? parts.map((part) => Number.parseInt(part, 16))
    : undefined;
}

function pairs([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string[] {
  return [a * 256 + b, c * 256 + d].map((group) => group.toString(16));
}

/** `::ffff:203.0.113.7` is an IPv4 visitor on an IPv6 socket. */
function mappedIpv4(groups: readonly number[]): number[] | undefined {
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return isMapped ? [high >> 8, high & 255, low >> 8, low & 255] : undefined;
}
