// OpenAI's chat, whole and streamed; some of the streams are left in the middle.
import { choices } from "../chance.ts";
import type { Turn } from "../clients.ts";
import { add } from "../counted.ts";
import { models } from "../taken-job.ts";

const path = `/v2/${models.text}/openai/v1/chat/completions`;

const kinds = ["chat", "streamed chat", "streamed chat left"] as const;

export async function chat({ n, fate, seed, clients }: Turn): Promise<void> {
  const next = choices(seed, n, "chats");
  const kind = kinds[fate.variant % kinds.length] ?? "chat";
  clients.count(kind);
  const stream = kind !== "chat";
  const body = JSON.stringify({ messages: [{ role: "user", content: "hello" }], max_tokens: 300, seed: n, stream });
  const headers: Record<string, string> = fate.idempotent ? { "Idempotency-Key": `chat-${n}` } : {};
  if (kind !== "streamed chat left")
    return void (await clients.ask(fate.user, "POST", path, { body, headers, mayBreak: stream }));
  await leave({ n, fate, seed, clients }, { body, headers }, 1 + Math.floor(next() * 600));
}

/** So many bytes are read, and no more. */
async function leave({ fate, clients }: Turn, init: RequestInit, bytes: number): Promise<void> {
  const sentAt = Date.now();
  const headers = { ...init.headers, ...clients.authorization(fate.user), "Accept-Encoding": "identity" };
  try {
    const response = await fetch(clients.url + path, { ...init, method: "POST", headers });
    const read: Uint8Array[] = [];
    for await (const piece of response.body ?? []) {
      read.push(piece);
      if (response.ok && Buffer.concat(read).length >= bytes) break;
    }
    clients.judge(
      { status: response.status, headers: response.headers, bytes: Buffer.concat(read) },
      `POST ${path}`,
      sentAt,
    );
  } catch {
    add(clients.answers, "broken exchange");
  }
}
