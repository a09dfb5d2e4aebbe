// The Worker's line of JSON an exchange, for people.
import { styleText } from "node:util";

/** What is read of it. A member that an exchange has no word for is absent. */
export interface Exchange {
  readonly method: string;
  readonly status: number;
  readonly ms: number;
  readonly route?: string;
  readonly path?: string;
  readonly model?: string;
  readonly code?: string;
  /** The job's status. */
  readonly job?: string;
  /** USD. */
  readonly cost?: number;
  readonly cache?: string;
  /** The Worker called itself. */
  readonly inner?: boolean;
}

export function readExchange(line: unknown): Exchange | undefined {
  const { requestId, method, status, ms } = (line ?? {}) as Record<string, unknown>;
  const isOne = typeof requestId === "string" && typeof method === "string" && typeof ms === "number";
  return isOne && typeof status === "number" ? (line as Exchange) : undefined;
}

/** What the Worker does beside a request that is told of anyway. Where that goes wrong, it is told of too. */
export function isForTools({ inner, status, code }: Exchange): boolean {
  return inner === true && status < 400 && code === undefined;
}

/** `14:03:22 POST    200   412 ms /v2/qwen-image-t2i/runsync  COMPLETED  0.02 USD  MISS` */
export function requestLine(exchange: Exchange, at: Date, colours: boolean): string {
  const { method, status, ms, route, path = route, model, code, job, cost, cache, inner } = exchange;
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    colours ? styleText(style, text, { validateStream: false }) : text;
  const words = [
    path ?? "",
    model !== undefined && !path?.includes(model) ? model : "",
    code === undefined ? "" : paint(styleOf(status), code),
    job ?? "",
    cost === undefined ? "" : `${cost} USD`,
    cache ?? "",
    inner ? "inner" : "",
  ];
  const head = [
    paint("dim", at.toTimeString().slice(0, 8)),
    method.padEnd("OPTIONS".length),
    paint(styleOf(status), `${status}`),
    `${ms}`.padStart(5),
    "ms",
  ];
  return [head.join(" "), ...words.filter(Boolean)].join("  ");
}

function styleOf(status: number): "green" | "yellow" | "red" {
  if (status >= 500) return "red";
  return status >= 400 ? "yellow" : "green";
}
