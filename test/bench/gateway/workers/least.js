// The least that a gateway can do that shows a job under another id: a call of its own, the answer parsed and written anew.
const headers = { "Content-Type": "application/json" };

export default {
  async fetch(request, env) {
    const { pathname, search } = new URL(request.url);
    const response = await fetch(env.UPSTREAM + pathname + search, { headers: { Accept: "application/json" } });
    const job = await response.json();
    return new Response(JSON.stringify({ ...job, id: `handle-of-${job.id}` }), { headers });
  },
};
