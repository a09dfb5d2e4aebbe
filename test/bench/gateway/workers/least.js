// The least that a gateway can do which hides the key and a job's own id, in one function and with no framework: the server's
// key, a time limit, an answer that is checked and written anew, an id, headers for browsers and a line in the log.
const limitMs = 10_000;
const maxBytes = 16 * 1024;
const decoder = new TextDecoder("utf-8", { fatal: true });

export default {
  async fetch(request, env) {
    const startedAt = Date.now();
    const requestId = crypto.randomUUID();
    const { pathname, search } = new URL(request.url);
    const caller = request.headers.get("Authorization")?.replace(/^bearer +/i, "");
    const { promise: late, reject } = Promise.withResolvers();
    const timer = setTimeout(() => reject(new Error("no answer in time")), limitMs);
    const job = await Promise.race([ask(env.UPSTREAM + pathname + search), late]);
    clearTimeout(timer);
    const headers = {
      "Content-Type": "application/json",
      "X-Request-Id": requestId,
      "Server-Timing": `total;dur=${Date.now() - startedAt}`,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    };
    const response = new Response(JSON.stringify({ ...job, id: `handle-of-${job.id}` }), { headers });
    const owner = caller?.slice(-16);
    const { method } = request;
    console.log(JSON.stringify({ requestId, owner, path: pathname, method, status: 200, ms: Date.now() - startedAt }));
    return response;
  },
};

async function ask(url) {
  const headers = { Authorization: "Bearer key-of-the-upstream-0123456789abcdef", Accept: "application/json" };
  const response = await fetch(url, { headers, redirect: "manual" });
  const length = Number(response.headers.get("Content-Length") ?? Number.POSITIVE_INFINITY);
  const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
  if (!response.ok || !isJson || length > maxBytes) throw new Error("no good answer");
  return JSON.parse(decoder.decode(await response.arrayBuffer()));
}
