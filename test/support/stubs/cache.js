// Stands in for the cache behind the Cache API, in memory: a put brings the response as HTTP writes it.
const entries = new Map();
const decoder = new TextDecoder();

export default {
  async fetch(request) {
    if (request.method === "PUT") return put(request.url, new Uint8Array(await request.arrayBuffer()));
    if (request.method === "PURGE") return new Response(null, { status: entries.delete(request.url) ? 200 : 404 });
    const entry = entries.get(request.url);
    if (!entry) return new Response(null, { status: 504, headers: { "CF-Cache-Status": "MISS" } });
    return new Response(entry.body, { status: entry.status, headers: entry.headers });
  },
};

function put(url, bytes) {
  const end = endOfHead(bytes);
  const [first, ...lines] = decoder.decode(bytes.subarray(0, end)).split("\r\n");
  const headers = new Headers({ "CF-Cache-Status": "HIT" });
  for (const line of lines) {
    const [name, ...value] = line.split(":");
    if (!/^(transfer-encoding|content-length|connection)$/i.test(name)) headers.append(name, value.join(":").trim());
  }
  entries.set(url, { status: Number(first.split(" ")[1]), headers, body: bytes.slice(end + 4) });
  return new Response(null, { status: 204 });
}

function endOfHead(bytes) {
  let at = 0;
  while (!(bytes[at] === 13 && bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10)) at += 1;
  return at;
}
