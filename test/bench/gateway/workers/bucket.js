// The least that takes a file and gives it back: the body as it comes, into the bucket.
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (request.method === "PUT") {
      await env.MEDIA.put(pathname, request.body);
      return new Response(null, { status: 201 });
    }
    const object = await env.MEDIA.get(pathname);
    return new Response(object.body, { headers: { "Content-Length": String(object.size) } });
  },
};
