// Work on many things, some of them at a time.

/** Results are in the order of the items. */
export async function inTurns<T, R>(items: readonly T[], atOnce: number, act: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    done.push(...(await Promise.all(items.slice(from, from + atOnce).map(act))));
  }
  return done;
}
