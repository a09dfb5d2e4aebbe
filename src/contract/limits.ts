// Every limit of the contract, in one place. Sizes are in bytes, times in milliseconds.

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const dayMs = 24 * 60 * minuteMs;
const mebibyte = 1024 * 1024;

export const limits = {
  runPayloadBytes: 10 * mebibyte,
  runsyncPayloadBytes: 20 * mebibyte,
  streamChunkBytes: 1_000_000,
  waitMs: { min: secondMs, max: 300 * secondMs, default: 90 * secondMs },
  streamWaitMs: { min: secondMs, max: 300 * secondMs, default: 10 * secondMs },
  executionTimeoutMs: { min: 5 * secondMs, max: 7 * dayMs, default: 10 * minuteMs },
  ttlMs: { min: 10 * secondMs, max: 7 * dayMs, default: dayMs },
  runRetentionMs: 30 * minuteMs,
  runsyncRetentionMs: { min: minuteMs, max: 5 * minuteMs },
  mediaLifetimeMs: 7 * dayMs,
  webhook: { tries: 3, delayMs: 10 * secondMs, timeoutMs: 10 * secondMs, urlLength: 2048 },
  /** How long a worker's poll is held; it asks again at once. */
  takeHoldMs: 90 * secondMs,
  /** Load-balancing endpoints: how long a caller waits for a worker, how long a worker takes, how much passes each way. */
  balanced: { noWorkerMs: 2 * minuteMs, strictMs: 5 * minuteMs, requestMs: 5.5 * minuteMs, bytes: 30 * mebibyte },
  workerPingMs: 10 * secondMs,
  /** A worker not heard of for three pings is gone. */
  workerLostMs: 30 * secondMs,
} as const;
