// The contract's rate table: per endpoint and operation, requests in ten seconds and requests at once.

export interface Rate {
  readonly requests: number;
  readonly concurrent: number;
}

export const rateWindowMs = 10_000;

export const rates = {
  runsync: { requests: 2000, concurrent: 400 },
  run: { requests: 1000, concurrent: 200 },
  status: { requests: 2000, concurrent: 400 },
  stream: { requests: 2000, concurrent: 400 },
  cancel: { requests: 100, concurrent: 20 },
  "purge-queue": { requests: 2, concurrent: Number.POSITIVE_INFINITY },
  openai: { requests: 2000, concurrent: 400 },
  requests: { requests: 10, concurrent: 2 },
} as const satisfies Record<string, Rate>;

export type RatedOperation = keyof typeof rates;

/** The dynamic rule: running workers lift both limits, never lower them. */
export function effectiveRate(base: Rate, runningWorkers: number, requestsPerWorker: number): Rate {
  const lifted = runningWorkers * requestsPerWorker;
  return { requests: Math.max(base.requests, lifted), concurrent: Math.max(base.concurrent, lifted) };
}
