// Waits for an answer with a time limit: an object that hangs must not hold its callers.

export class TookTooLong extends Error {
  constructor() {
    super("took too long");
  }
}

/** After the limit the work goes on, and its result is ignored. */
export async function inTime<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const timer = Promise.withResolvers<never>();
  const timeout = setTimeout(() => timer.reject(new TookTooLong()), limitMs);
  try {
    return await Promise.race([work, timer.promise]);
  } finally {
    clearTimeout(timeout);
  }
}
