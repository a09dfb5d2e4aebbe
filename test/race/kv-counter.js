// A quota counted in KV as one writes it at first: get, compare, put, relay. It is here to be seen failing.
const limit = 50;

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const used = Number((await env.COUNTS.get("ada")) ?? 0);
    if (used >= limit) return new Response("limit reached", { status: 429 });
    await env.COUNTS.put("ada", String(used + 1));
    return fetch(env.UPSTREAM + pathname, request);
  },
};
