// What `npm start` prints once it serves: where, a first picture, and how a user of one's own gets a token.
import { networkInterfaces } from "node:os";

const everyAddress = ["0.0.0.0", "::"];

/** Where this machine calls it. */
export function addressOf(host: string, port: number): string {
  if (everyAddress.includes(host)) return `http://127.0.0.1:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

interface Shown {
  readonly hasPage: boolean;
  /** The settings that are wrong were named before. */
  readonly isMisconfigured: boolean;
  /** Without it there is no backend that asks for tokens. */
  readonly hasAppSecret: boolean;
  readonly devVars: string;
}

export function firstScreen(
  host: string,
  port: number,
  { hasPage, isMisconfigured, hasAppSecret, devVars }: Shown,
): string {
  const address = addressOf(host, port);
  if (isMisconfigured) return misconfigured(address, devVars);
  const network = everyAddress.includes(host) ? networkAddresses() : [];
  const where = [
    `Sluice serves at ${address}`,
    ...network.map((ip) => `On your network: ${addressOf(ip, port)}`),
    hasPage ? "Open it in a browser: the playground makes the first picture by one click." : "",
  ];
  return `
${where.filter(Boolean).join("\n")}

A first picture:

  TOKEN=$(curl -s -X POST ${address}/sessions -d '{}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
  curl -s ${address}/v2/black-forest-labs-flux-1-schnell/runsync -H "Authorization: Bearer $TOKEN" \\
    -d '{"input":{"prompt":"a lighthouse at dusk","seed":7}}'
${hasAppSecret ? ofABackend(address, devVars) : ""}`;
}

function ofABackend(address: string, devVars: string): string {
  return `
A token for a user of your app, as its backend asks for it:

  curl -s -X POST ${address}/tokens -H "Authorization: Bearer $(sed -n 's/^APP_SECRET=//p' ${forShell(devVars)})" \\
    -d '{"user":"ada","plan":"pro"}'
`;
}

/** Nothing of it would work. */
function misconfigured(address: string, devVars: string): string {
  return `
The settings that are named above are wrong. Until they are mended, in ${devVars} or wrangler.toml,
every request is answered with 500 MISCONFIGURED. An edit is served within two seconds.

Sluice serves at ${address}
`;
}

/** As it stands where a shell takes it so. */
function forShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function networkAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
}
