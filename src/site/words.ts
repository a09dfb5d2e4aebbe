// Amounts, times and failures as people read them.
import { SluiceError } from "../client/index.ts";

/** Cents, and below a dollar as many more digits as tell three of the amount. */
export function usd(amount: number): string {
  const magnitude = amount > 0 && amount < 1 ? Math.floor(Math.log10(amount)) : 0;
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 - magnitude };
  return amount.toLocaleString("en-US", { style: "currency", currency: "USD", ...digits });
}

/** A megabyte is a million bytes, as in the limits of the plans. */
export function bytes(size: number): string {
  const [value, unit] = size < 1e6 ? [size / 1e3, "KB"] : [size / 1e6, "MB"];
  const least = size > 0 ? Math.max(value, 0.1) : 0;
  return `${least.toLocaleString("en-US", { maximumFractionDigits: least < 10 ? 1 : 0 })} ${unit}`;
}

const units = { day: 86_400, hour: 3_600, minute: 60, second: 1 } as const;
type Unit = keyof typeof units;

/** "in 7 days", "3 minutes ago". */
export function fromNow(date: string): string {
  const seconds = (new Date(date).getTime() - Date.now()) / 1000;
  const unit = (Object.keys(units) as Unit[]).find((one) => Math.abs(seconds) >= units[one]) ?? "second";
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.round(seconds / units[unit]), unit);
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

const troubles: Readonly<Record<string, readonly [title: string, advice: string]>> = {
  NETWORK: ["No connection", "Check your connection and try again. The form keeps what you typed."],
  JOB_FAILED: ["The model failed", "It cost nothing. Change the input or try again."],
  JOB_CANCELLED: ["Cancelled", "Run it again when you like."],
  JOB_TIMED_OUT: ["The model took too long", "Try again, or ask for something smaller."],
  FILE_GONE: ["The file cannot be fetched", "Check your connection and try again, or make it anew."],
  INVALID_REQUEST: ["The input is not accepted", "Correct the field and run it again."],
  PAYLOAD_TOO_LARGE: ["Too large", "Take a smaller file, or give its link."],
  UNSUPPORTED_TYPE: ["This kind of file is not taken", "Choose another file."],
  QUOTA_EXCEEDED: ["The quota is used up", "Your account page shows each limit and when it begins anew."],
  RATE_LIMITED: ["Too many requests", "Wait a moment, then try again."],
  TOO_MANY_JOBS: ["Too many jobs at once", "Wait until one ends, or cancel one."],
  UPSTREAM_BUSY: ["The model is busy", "Try again in a moment."],
  TOKEN_EXPIRED: ["Your session has ended", "Paste a new token below. The form keeps what you typed."],
  TOKEN_REVOKED: ["Your token was revoked", "Paste another one below. The form keeps what you typed."],
  UNAUTHORIZED: ["The token is not accepted", "Paste another one below. The form keeps what you typed."],
  TURNSTILE_FAILED: [
    "The check that you are a person failed",
    "Try again. A browser that blocks scripts may be the reason.",
  ],
  ANONYMOUS_OFF: ["A token is needed", "Visitors without an account are switched off here."],
  NO_ROOM: ["Your plan has no room for this", "Waiting does not help. Take something smaller, or another model."],
  NONE_ALLOWED: ["Your plan allows none of this", "Waiting does not help. Take another kind of model."],
  MODEL_DISABLED: ["This model is switched off", "Choose another model."],
};
const wantToken = ["TOKEN_EXPIRED", "TOKEN_REVOKED", "UNAUTHORIZED", "ANONYMOUS_OFF"];

export type Trouble = ReturnType<typeof troubleOf>;

export function troubleOf(error: unknown) {
  const { message } = error as Error;
  const { code, retryAfter, requestId } = error instanceof SluiceError ? error : new SluiceError("OTHER", message);
  const limit = limitIn(message);
  const known = troubles[limit?.noRoom ?? code];
  const [title, advice] = known ?? ["It did not work", "Try again, or quote the request's number."];
  return {
    title,
    sentence: limit?.sentence ?? endIn(message) ?? message,
    advice,
    /** The gateway wants a token that it does not have. */
    wantsToken: wantToken.includes(code),
    /** Waiting does not help. */
    isFinal: limit?.noRoom !== undefined,
    /** Of the input, where the gateway names it. */
    field: /^input\.(\w+)/.exec(message)?.[1],
    againAt: retryAfter === undefined ? undefined : Date.now() + retryAfter * 1000,
    requestId,
  };
}

/** What the gateway writes of a limit, in people's amounts: "usd-day: 5 USD would exceed the 1 USD of this day, of which …". */
function limitIn(message: string): { readonly sentence: string; readonly noRoom?: string | undefined } | undefined {
  const [, count, unit, span] = /^\S+: more than (\d+) (request|job)s (.+)$/.exec(message) ?? [];
  if (count) return { sentence: `The limit is ${count} ${unit}${count === "1" ? "" : "s"} ${span}.` };
  const [, of] = /^app-usd-\w+: what (.+)$/.exec(message) ?? [];
  if (of) return { sentence: `What ${of}.` };
  const amounts = /^\S+: ([\d.]+) (USD|bytes) would exceed the ([\d.]+) \w+ (.+), of which ([\d.]+) are used$/;
  const [, needed, measure, limit, scope, used] = amounts.exec(message) ?? [];
  if (scope === undefined) return undefined;
  const show = (amount = "") => (measure === "USD" ? usd : bytes)(Number(amount));
  const noRoom = Number(needed) > Number(limit) ? (Number(limit) === 0 ? "NONE_ALLOWED" : "NO_ROOM") : undefined;
  const rest = noRoom ? "That alone is more than" : `${show(used)} ${measure === "USD" ? "is" : "are"} used of`;
  return { sentence: `This may take ${show(needed)}. ${rest} the ${show(limit)} ${scope}.`, noRoom };
}

/** Of a job that says nothing but its state. */
function endIn(message: string): string | undefined {
  const [, state = ""] = /^The job is ([A-Z_]+)\.$/.exec(message) ?? [];
  return { FAILED: "It did not say why.", CANCELLED: "The job was cancelled.", TIMED_OUT: "It did not end in time." }[
    state
  ];
}
