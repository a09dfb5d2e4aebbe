// Headers of a request that is passed on. The caller's go along, except those that name the caller or the connection.
// Of the answer's, only those that describe its body and a worker's own `x-` headers come back.

/** The caller's own credentials, what the network says of the caller, and what belongs to one connection. */
const unasked = new Set([
  ...["authorization", "cookie", "cookie2", "proxy-authorization", "host", "origin", "referer", "content-length"],
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"],
  ...["forwarded", "via", "x-real-ip", "true-client-ip", "x-client-ip", "x-runpod-worker-id"],
]);
const unaskedPrefixes = ["cf-", "sec-", "x-forwarded-", "proxy-"];

/** What would take an answer to pieces, or wrap it, so that a secret in it is not seen. */
const veiling = new Set(["accept-encoding", "range", "if-range"]);

interface Leaving {
  /** Ours, which count before the caller's. */
  readonly own: Readonly<Record<string, string>>;
  readonly secrets?: object | undefined;
}

export function requestHeaders(theirs: Headers, { own, secrets }: Leaving): Headers {
  const headers = new Headers();
  const ofConnection = (theirs.get("Connection") ?? "").toLowerCase().split(/\s*,\s*/);
  for (const [name, value] of theirs) {
    const stays = unasked.has(name) || unaskedPrefixes.some((prefix) => name.startsWith(prefix));
    const veils = secrets !== undefined && veiling.has(name);
    if (!stays && !veils && !ofConnection.includes(name)) headers.append(name, value);
  }
  for (const [name, value] of Object.entries(own)) headers.set(name, value);
  // The runtime states it by itself; the embedded platform, which is called without the network, reads it here.
  const length = theirs.get("Content-Length");
  if (length !== null) headers.set("Content-Length", length);
  return headers;
}

/** What browsers act upon is ours to say: of a worker's there is no cookie, no policy, no word about our origin. */
const answered = new Set([
  ...["content-type", "content-length", "content-encoding", "content-language", "content-disposition"],
  ...["content-range", "accept-ranges", "etag", "last-modified", "retry-after", "allow"],
]);
/** The runtime would log any other value in its own words, and hand it on spoilt. */
const plain = /^[\t\x20-\x7e]*$/;
/** Headers of a worker's own begin with `x-`; these are ours, or steer what stands before us. */
const ours =
  /^x-(request-id|cache|cost|frame-options|content-type-options|xss-protection|accel-.*|sendfile|robots-tag)$/;

interface Place {
  readonly base: string;
  readonly mount: string;
  /** The URL that was asked for. */
  readonly target: string;
}

/**
 * The headers of the answer. No cache may store it, since the next caller must pay; and no script of a worker's page
 * may run in our origin.
 */
export function answerHeaders(theirs: Headers, place: Place): Headers {
  const headers = new Headers({ "Cache-Control": "no-store", "Content-Security-Policy": "sandbox" });
  for (const [name, value] of theirs) {
    const isTheirs = answered.has(name) || (name.startsWith("x-") && !ours.test(name));
    if (isTheirs && plain.test(value)) headers.append(name, value);
  }
  const location = theirs.get("Location");
  const moved = location === null ? undefined : movedTo(location, place);
  if (moved !== undefined) headers.set("Location", moved);
  return headers;
}

/** A place beside the one that was asked is named as the caller calls it; a worker's own address is nobody's business. */
function movedTo(location: string, { base, mount, target }: Place): string | undefined {
  if (!URL.canParse(location, target)) return undefined;
  const url = new URL(location, target);
  const { href, origin } = new URL(base);
  const own = href.replace(/\/$/, "");
  if (url.href === own || url.href.startsWith(`${own}/`)) return mount + url.href.slice(own.length);
  return url.origin === origin || !/^https?:$/.test(url.protocol) ? undefined : url.href;
}
