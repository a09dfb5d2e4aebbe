// Waits for an answer with a time limit: an object that hangs must not hold its callers.

export class TookTooLong extends Error {
  constructor() {
    super("took too long");
  }
}

/** After the limit the work goes on, and its result is ignored. `late` says what the caller is told then. */
export function inTime<T>(limitMs: number, work: Promise<T>, late: () => Error = () => new TookTooLong()): Promise<T> {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => reject(late()), limitMs);
    work.then(
      (result) => {
        clearTimeout(timeout);
        resolve(result);
      },
      (error) => {
        clearTimeout(timeout);
        reject(error);
      },
    );
  });
}
