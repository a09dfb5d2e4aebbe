// Which pages may call: the rules of ALLOWED_ORIGINS, and the headers that browsers read.

/** What a page's script may read of an answer. */
const exposed = [
  "RateLimit-Policy",
  "RateLimit",
  "Retry-After",
  "X-Request-Id",
  "Server-Timing",
  "X-Cache",
  "Age",
  "X-Cost",
  "ETag",
  "Content-Range",
  "X-Runpod-Worker-Id",
].join(", ");
const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
/** What a page may send where it does not say; SDKs add names of their own, and no cookie is ever read. */
const defaultHeaders = "Authorization, Content-Type, Idempotency-Key, Cache-Control, Last-Event-ID";
const maxRequestedHeaders = 2048;
const preflightSeconds = "86400";

export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return allowed.some((rule) => rule === "*" || rule === origin || matchesSubdomain(origin, rule));
}

/** `https://*.example.com` means every subdomain, at any depth, and not example.com itself. */
function matchesSubdomain(origin: string, rule: string): boolean {
  const [scheme, suffix] = rule.split("://*");
  if (suffix === undefined || !origin.startsWith(`${scheme}://`) || !origin.endsWith(suffix)) return false;
  const subdomain = origin.slice(`${scheme}://`.length, -suffix.length);
  return /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i.test(subdomain);
}

/** Sets what the page's browser asks for; an origin that is not allowed gets nothing it could use. */
export function allowOrigin(headers: Headers, origin: string | null, allowed: readonly string[]): boolean {
  const anyone = allowed.includes("*");
  if (!anyone) headers.append("Vary", "Origin");
  if (origin === null || !isAllowedOrigin(origin, allowed)) return false;
  headers.set("Access-Control-Allow-Origin", anyone ? "*" : origin);
  headers.set("Access-Control-Expose-Headers", exposed);
  return true;
}

/** For an answer that is kept, and given to the next one who asks, with or without an Origin. */
export function headersForAnyone(allowed: readonly string[]): Record<string, string> {
  if (!allowed.includes("*")) return {};
  return { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": exposed };
}

export function answerPreflight(request: Request, allowed: readonly string[]): Response {
  const headers = new Headers();
  if (allowOrigin(headers, request.headers.get("Origin"), allowed)) {
    const asked = request.headers.get("Access-Control-Request-Headers") ?? defaultHeaders;
    headers.set("Access-Control-Allow-Methods", methods);
    headers.set("Access-Control-Allow-Headers", asked.length > maxRequestedHeaders ? defaultHeaders : asked);
    headers.set("Access-Control-Max-Age", preflightSeconds);
  }
  return new Response(null, { status: 204, headers });
}
