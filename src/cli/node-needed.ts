// Which Node the gateway runs on. A checkout brings one along; a package is started by the machine's own.

/** `engines` of package.json says the same. Miniflare needs 22, and what Node compiled is kept from 22.1 on. */
export const neededNode = "22.1";

/** One sentence where this Node is too old: else it would say which name of its own it does not know. */
export function sayTooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [neededMajor = 0, neededMinor = 0] = neededNode.split(".").map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return undefined;
  return `Sluice needs Node ${neededNode} or later to serve, and this is Node ${version}: see https://nodejs.org`;
}
