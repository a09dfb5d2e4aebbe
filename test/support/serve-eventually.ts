// Waiting for what must come, with a deadline instead of a guess.

const pauseMs = 100;

/** Asks until the answer is neither undefined nor false; an error counts as "not yet" until the deadline. */
export async function eventually<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  let last: unknown = "nothing";
  while (Date.now() < deadline) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error(`${what} did not come within ${withinMs} ms; the last fault was ${String(last)}`);
}

/** Each item in turn, as many at once as said. */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  act: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await act(items[index] as T);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  return results;
}
