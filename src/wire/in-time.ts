// Waits for another's answer so long and no longer: an object that hangs must not hold its callers.

export class TookTooLong extends Error {
  constructor() {
    super("took too long");
  }
}

/** What becomes of the work is nobody's business after that. */
export async function inTime<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const timer = Promise.withResolvers<never>();
  const timeout = setTimeout(() => timer.reject(new TookTooLong()), limitMs);
  try {
    return await Promise.race([work, timer.promise]);
  } finally {
    clearTimeout(timeout);
  }
}
