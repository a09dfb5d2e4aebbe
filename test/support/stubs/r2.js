// Stands in for an R2 bucket, in memory: put, head, get, list and delete, as the binding asks for them.
const objects = new Map();
const sizeHeader = "cf-r2-metadata-size";

export default {
  fetch(request) {
    return request.method === "GET" ? read(JSON.parse(request.headers.get("cf-r2-request"))) : write(request);
  },
};

function read({ method, object, prefix = "", range }) {
  if (method === "list") return listed(prefix);
  const found = objects.get(object);
  if (!found) return refused(404, 10007, "The specified key does not exist.");
  if (method === "head") return answer(found.head);
  const offset = Number(range?.offset ?? (range?.suffix ? Math.max(0, found.head.size - Number(range.suffix)) : 0));
  const bytes = found.bytes.subarray(offset, range?.length ? offset + Number(range.length) : undefined);
  return answer(range ? { ...found.head, range: { offset, length: bytes.byteLength } } : found.head, bytes);
}

function listed(prefix) {
  const names = [...objects.keys()].filter((name) => name.startsWith(prefix)).sort();
  return answer({ objects: names.map((name) => objects.get(name).head), truncated: false, delimitedPrefixes: [] });
}

async function write(request) {
  const whole = new Uint8Array(await request.arrayBuffer());
  const size = Number(request.headers.get(sizeHeader));
  const asked = JSON.parse(new TextDecoder().decode(whole.subarray(0, size)));
  if (asked.method === "delete") {
    for (const name of asked.objects ?? [asked.object]) objects.delete(name);
    return new Response();
  }
  if (asked.method !== "put") return refused(501, 10001, `${asked.method} has no stand-in.`);
  const isOnlyNew = asked.onlyIf?.etagDoesNotMatch !== undefined;
  if (isOnlyNew && objects.has(asked.object)) return refused(412, 10031, "The file is there already.");
  const bytes = whole.subarray(size);
  const etag = crypto.randomUUID().replaceAll("-", "");
  const head = {
    name: asked.object,
    version: crypto.randomUUID(),
    etag,
    size: bytes.byteLength,
    uploaded: Date.now(),
    httpFields: asked.httpFields ?? {},
    customFields: asked.customFields ?? [],
    checksums: {},
    storageClass: "Standard",
  };
  objects.set(asked.object, { head, bytes });
  return answer(head);
}

function answer(head, bytes = new Uint8Array()) {
  const metadata = new TextEncoder().encode(JSON.stringify(head));
  const headers = { [sizeHeader]: String(metadata.byteLength), "Content-Type": "application/json" };
  return new Response(new Blob([metadata, bytes]), { headers });
}

function refused(status, v4code, message) {
  const error = JSON.stringify({ version: 1, v4code, message });
  return new Response(message, { status, headers: { "cf-r2-error": error } });
}
