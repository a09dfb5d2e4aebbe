// Stands in for a KV namespace, in memory: get, put, list and delete, as the binding asks for them.
const entries = new Map();

export default {
  async fetch(request) {
    const url = new URL(request.url);
    const key = decodeURIComponent(url.pathname.slice(1));
    if (request.method === "PUT") return put(key, url.searchParams, request);
    if (request.method === "DELETE") {
      entries.delete(key);
      return new Response();
    }
    if (key === "") return list(url.searchParams.get("prefix") ?? "");
    const entry = live(key);
    if (!entry) return new Response("Not Found", { status: 404 });
    const headers = entry.metadata === null ? {} : { "CF-KV-Metadata": entry.metadata };
    return new Response(entry.value, { headers });
  },
};

async function put(key, query, request) {
  const seconds = query.get("expiration_ttl");
  const at = query.get("expiration") ?? (seconds === null ? null : Date.now() / 1000 + Number(seconds));
  const metadata = request.headers.get("CF-KV-Metadata");
  entries.set(key, { value: await request.arrayBuffer(), metadata, at: at === null ? null : Number(at) });
  return new Response();
}

function live(key) {
  const entry = entries.get(key);
  if (entry?.at === null || (entry && entry.at > Date.now() / 1000)) return entry;
  entries.delete(key);
  return undefined;
}

function list(prefix) {
  const names = [...entries.keys()].filter((name) => name.startsWith(prefix) && live(name)).sort();
  const keys = names.map((name) => {
    const { at, metadata } = entries.get(name);
    return { name, ...(at && { expiration: Math.floor(at) }), ...(metadata && { metadata: JSON.parse(metadata) }) };
  });
  return Response.json({ keys, list_complete: true, cacheStatus: null });
}
