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

const operations = {
  run: () => ({ id: `job-${++jobs}`, status: "IN_QUEUE" }),
  runsync: () => ({ ...ended, id: `sync-${++jobs}` }),
  status: (model) => (model.endsWith("schnell") ? ended : running),
};
const running = { delayTime: 120, id: "job-0", status: "IN_PROGRESS", workerId: "worker-1" };
const ended = {
  ...{ delayTime: 120, executionTime: 900, id: "job-0", status: "COMPLETED", workerId: "worker-1" },
  output: { image_url: "https://media.example.com/0123456789abcdef/picture.jpeg", cost: 0.02 },
};

export default {
  async fetch(request) {
    const [, , model, operation] = new URL(request.url).pathname.split("/");
    if (request.method === "POST") await request.arrayBuffer();
    if (operation === "openai") return new Response(stream(), { headers: { "Content-Type": "text/event-stream" } });
    const answer = operations[operation]?.(model);
    return answer
      ? new Response(JSON.stringify(answer), { headers: json })
      : new Response('{"error":"no such route"}', { status: 404, headers: json });
  },
};

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
