// Stands in for the model service: it answers at once, and costs as little as it can.
let jobs = 0;
const json = { "Content-Type": "application/json" };
const events = 5000;
const encoder = new TextEncoder();
const event = encoder.encode(
  `data: ${JSON.stringify({ id: "chat-1", object: "chat.completion.chunk", choices: [{ delta: { content: "word " } }] })}\n\n`,
);
const last = encoder.encode(
  'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5000}}\n\ndata: [DONE]\n\n',
);

const said = JSON.stringify({
  ...{ id: "chat-1", object: "chat.completion", created: 0, model: "qwen3-32b-awq" },
  choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
});

const operations = {
  run: () => ({ id: `job-${++jobs}`, status: "IN_QUEUE" }),
  runsync: () => ({ ...ended, id: `sync-${++jobs}` }),
  "status-sync": () => ended,
  status: (model) => (model.endsWith("schnell") ? ended : running),
};
const running = { delayTime: 120, id: "job-0", status: "IN_PROGRESS", workerId: "worker-1" };
const ended = {
  ...{ delayTime: 120, executionTime: 900, id: "job-0", status: "COMPLETED", workerId: "worker-1" },
};
const picture = new Uint8Array(64 * 1024);
picture.set([0xff, 0xd8, 0xff, 0xe0]);

const film = new Uint8Array(20_000_000);
film.set(new TextEncoder().encode("\0\0\0\x20ftypisom"));

export default {
  async fetch(request) {
    const { pathname, origin } = new URL(request.url);
    if (pathname.startsWith("/films/")) return new Response(film, { headers: { "Content-Type": "video/mp4" } });
    if (pathname.startsWith("/images/")) return new Response(picture, { headers: { "Content-Type": "image/jpeg" } });
    if (pathname === "/ping") return new Response(null);
    if (pathname.endsWith("/echo")) return new Response(await request.text(), { headers: json });
    const [, , model, operation] = pathname.split("/");
    if (operation === "openai") return chat(await request.json());
    if (request.method === "POST") await request.arrayBuffer();
    ended.output = model?.startsWith("wan")
      ? { video_url: `${origin}/films/film.mp4`, cost: 0.3 }
      : { image_url: `${origin}/images/picture.jpeg`, cost: 0.02 };
    const answer = operations[operation]?.(model);
    return answer
      ? new Response(JSON.stringify(answer), { headers: json })
      : new Response('{"error":"no such route"}', { status: 404, headers: json });
  },
};

function chat(asked) {
  if (asked.stream) return new Response(stream(), { headers: { "Content-Type": "text/event-stream" } });
  return new Response(said, { headers: json });
}

function stream() {
  let sent = 0;
  return new ReadableStream({
    pull(controller) {
      if (sent++ < events) return controller.enqueue(event);
      controller.enqueue(last);
      controller.close();
    },
  });
}
