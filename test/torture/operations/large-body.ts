// Bodies that stream: sent whole, broken off on the way, or longer than they may be; with their length stated, or in chunks.
import { type IncomingMessage, request } from "node:http";
import { choices } from "../chance.ts";
import type { Answer, Turn } from "../clients.ts";
import { cutOf } from "../hostile-upstream.ts";
import { pause, readBytes } from "../pace.ts";
import { models } from "../taken-job.ts";

const limitBytes = 10 * 1024 * 1024;
const pieceBytes = 64 * 1024;
const answersWithinMs = 30_000;

export async function largeBody(turn: Turn): Promise<void> {
  const { n, fate, seed, clients } = turn;
  const next = choices(seed, n, "large");
  const cut = cutOf(fate);
  clients.count(`large body ${cut}`);
  // A body in chunks is known to be too long only when it is: most of those that are too long say so.
  const isChunked = next() < (cut === "over the limit" ? 0.2 : 0.5);
  const size = cut === "over the limit" ? limitBytes + 1000 : 300_000 + Math.floor(next() * 900_000);
  const sent = cut === "broken off" ? Math.floor(next() * (size - 1000)) : size;
  const answer = await send(turn, { size, sent, isChunked });
  if (cut === "over the limit" && answer?.status === 200) clients.faults.push(`a body over the limit was taken: ${n}`);
  const job = clients.accept(answer, { user: fate.user, model: models.jobs, n });
  if (job) await clients.ended(job, 1_000);
}

interface Body {
  readonly size: number;
  readonly sent: number;
  readonly isChunked: boolean;
}

function send({ n, fate, clients }: Turn, { size, sent, isChunked }: Body): Promise<Answer | undefined> {
  const head = `{"input":{"n":${n},"pad":"`;
  const tail = `"},"policy":{"ttl":10000}}`;
  const body = Buffer.concat([
    Buffer.from(head),
    Buffer.alloc(size - head.length - tail.length, "x"),
    Buffer.from(tail),
  ]);
  const length = isChunked ? {} : { "Content-Length": size };
  const path = `/v2/${models.jobs}/run`;
  const options = { method: "POST", headers: { ...clients.authorization(fate.user), ...length } };
  const sentAt = Date.now();
  return new Promise((resolve) => {
    const judge = async (response: IncomingMessage) => {
      const bytes = await readBytes(response);
      const { statusCode: status = 0, headers: raw } = response;
      const headers = new Headers(Object.entries(raw).map(([name, value]) => [name, String(value)]));
      return clients.judge({ status, headers, bytes }, `POST ${path}`, sentAt);
    };
    const asked = request(clients.url + path, options, (response) => {
      // A kill may break the answer off.
      const judged = judge(response).catch(() => undefined);
      void judged.then(resolve).finally(() => asked.destroy());
    });
    asked.setTimeout(answersWithinMs, () => asked.destroy());
    asked.on("error", () => {});
    // Where an answer came it was told before.
    asked.on("close", () => resolve(undefined));
    void write();

    async function write(): Promise<void> {
      for (let at = 0; at < sent && !asked.destroyed; at += pieceBytes) {
        const isTaken = asked.write(body.subarray(at, Math.min(sent, at + pieceBytes)));
        if (!isTaken) await Promise.race([new Promise((drained) => asked.once("drain", drained)), pause(1_000)]);
      }
      if (sent === size) asked.end();
      else asked.destroy();
    }
  });
}
