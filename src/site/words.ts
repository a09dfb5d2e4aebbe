// Amounts, times and failures as people read them.
import { SluiceError } from "../client/index.ts";

export function usd(amount: number): string {
  const digits = amount === 0 || amount >= 1 ? { minimumFractionDigits: 2 } : { maximumSignificantDigits: 3 };
  return amount.toLocaleString("en-US", { style: "currency", currency: "USD", ...digits });
}

export function bytes(size: number): string {
  const [value, unit] = size < 1024 ** 2 ? [size / 1024, "KB"] : [size / 1024 ** 2, "MB"];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
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
  ANONYMOUS_OFF: ["A token is needed", "Visitors without an account are switched off here."],
  MODEL_DISABLED: ["This model is switched off", "Choose another model."],
};
const wantToken = ["TOKEN_EXPIRED", "TOKEN_REVOKED", "UNAUTHORIZED", "ANONYMOUS_OFF"];

export type Trouble = ReturnType<typeof troubleOf>;

export function troubleOf(error: unknown) {
  const { message } = error as Error;
  const { code, retryAfter, requestId } = error instanceof SluiceError ? error : new SluiceError("OTHER", message);
  const [title, advice] = troubles[code] ?? ["It did not work", "Try again, or quote the request's number."];
  return {
    title,
    sentence: message,
    advice,
    /** The gateway wants a token that it does not have. */
    wantsToken: wantToken.includes(code),
    /** Of the input, where the gateway names it. */
    field: /^input\.(\w+)/.exec(message)?.[1],
    againAt: retryAfter === undefined ? undefined : Date.now() + retryAfter * 1000,
    requestId,
  };
}
