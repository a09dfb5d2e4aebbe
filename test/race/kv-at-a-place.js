// Stands in for KV as one place of the edge sees it. It keeps what it read for a minute, a missing key too; a write is seen
// at once where it was made, and elsewhere when the kept copy ends.
const keptMs = 60_000;
const copies = new Map();

export default {
  async fetch(request, env) {
    const key = new URL(request.url).pathname;
    if (request.method === "PUT") return put(key, await request.arrayBuffer(), request.url, env);
    const kept = copies.get(key);
    if (kept && Date.now() < kept.until) return answer(kept);
    const response = await env.STORE.fetch(request.url);
    return answer(keep(key, response.status === 200 ? await response.arrayBuffer() : undefined));
  },
};

async function put(key, value, url, env) {
  await env.STORE.fetch(url, { method: "PUT", body: value });
  keep(key, value);
  return new Response();
}

function keep(key, value) {
  const copy = { value, until: Date.now() + keptMs };
  copies.set(key, copy);
  return copy;
}

function answer({ value }) {
  return value === undefined ? new Response("Not Found", { status: 404 }) : new Response(value);
}
