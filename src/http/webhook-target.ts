// Which hosts we call because a user or an answer names them: public names over https, never an address or a private
// name.

/** Names that mean a machine or a network of one's own, or nothing at all. */
const privateSuffixes = [
  ...["localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa"],
  ...["arpa", "test", "example", "invalid", "onion", "alt"],
  ...[
    "svc",
    "cluster",
    "pod",
    "consul",
    "docker",
    "kubernetes",
    "k8s",
    "intra",
    "localnet",
    "domain",
    "host",
    "router",
    "workgroup",
    "intern",
    "mshome.net",
    "fritz.box",
    "metadata.goog",
  ],
];
/** Public names that spell a private address, or lead to one. */
const addressNames = [
  ...["nip.io", "sslip.io", "xip.io", "xip.name", "traefik.me", "backname.io", "local-ip.co", "local-ip.sh"],
  ...["plex.direct", "rbndr.us", "1u.ms", "rebind.network", "localtest.me", "lvh.me", "vcap.me", "fuf.me", "local.gd"],
  ...["localho.st", "lacolhost.com", "localhost.direct", "localdev.me", "smackaho.st", "ipq.co", "yoogle.com"],
  ...["local-ip.medicmobile.org", "burpcollaborator.net"],
];

const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** Why the URL is not called; undefined where it is. Exact hosts, with or without a port, are allowed over http too. */
export function refuseTarget(url: string, allowedHosts: readonly string[]): string | undefined {
  if (!URL.canParse(url)) return "is not a URL";
  const { protocol, hostname, host, username, password, port } = new URL(url);
  if (protocol !== "https:" && protocol !== "http:") return "is not an https URL";
  if (username !== "" || password !== "") return "names a user or a password";
  if (allowedHosts.some((allowed) => [hostname, host].includes(allowed.toLowerCase()))) return undefined;
  if (protocol !== "https:") return "is not an https URL";
  if (port !== "") return "names a port";
  return isPublicHost(hostname) ? undefined : "is not on a public host";
}

/** The host as `URL` writes it: there every spelling of an address, decimal, octal, hex or short, is the dotted one. */
export function isPublicHost(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, "");
  const labels = name.split(".");
  if (name.length > 253 || labels.length < 2 || !labels.every((part) => label.test(part))) return false;
  if (!/^([a-z]{2,63}|xn--[a-z0-9-]{1,59})$/.test(labels.at(-1) ?? "")) return false;
  return ![...privateSuffixes, ...addressNames].some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}
