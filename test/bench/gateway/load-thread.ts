// The load, in a thread of its own: requests written as they are, answers read as far as their ends must be found.
import { connect, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import type { Load } from "./load.ts";

const { port, requests, connections, until } = workerData as Load;
const texts = requests.map((request) => Buffer.from(request));
const times: number[] = [];
const faults = new Map<string, number>();
const startedAt = performance.now();
let next = 0;
const isOver = "asked" in until ? () => next >= until.asked : () => performance.now() >= startedAt + until.durationMs;

await Promise.all(Array.from({ length: connections }, drive));
const seconds = (performance.now() - startedAt) / 1000;
parentPort?.postMessage({ times: Float64Array.from(times), seconds, faults: [...faults] });

function drive(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let sentAt = 0;
    let answer = "";
    const send = () => {
      if (isOver()) {
        socket.destroy();
        return resolve();
      }
      sentAt = performance.now();
      write(socket);
    };
    socket.on("connect", send);
    const again = () => {
      note(answer === "" ? "the server hung up" : answer);
      drive().then(resolve, reject);
    };
    // So a Worker says that its own connection to the upstream was lost.
    socket.on("error", (error: NodeJS.ErrnoException) => (error.code === "ECONNRESET" ? again() : reject(error)));
    socket.on("end", again);
    socket.on("data", (piece) => {
      answer += piece.toString("latin1");
      if (!isWhole(answer)) return;
      times.push(performance.now() - sentAt);
      const status = answer.slice("HTTP/1.1 ".length, answer.indexOf("\r\n"));
      if (!status.startsWith("200 ")) note(answer);
      answer = "";
      send();
    });
  });
}

function note(fault: string): void {
  faults.set(fault, (faults.get(fault) ?? 0) + 1);
}

function write(socket: Socket): void {
  const text = texts[next % texts.length];
  next += 1;
  if (text) socket.write(text);
}

function isWhole(answer: string): boolean {
  const head = answer.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer.slice(0, head))?.[1];
  return length === undefined ? answer.endsWith("\r\n0\r\n\r\n") : answer.length >= head + 4 + Number(length);
}
