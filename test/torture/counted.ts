// The operations that torture is made of, how often each was made, and how often it must have been.

export const operations = [
  ...["run", "runsync", "status", "cancel", "stream", "cancel after output"],
  ...["retry of FAILED", "retry of TIMED_OUT", "retry of CANCELLED", "retry of COMPLETED"],
  ...["chat", "streamed chat", "streamed chat left"],
  ...["large body whole", "large body broken off", "large body over the limit"],
  ...["picture", "picture joined", "picture from the cache", "picture read", "picture deleted"],
  ...["webhook", "file", "file read"],
  ...["upload", "upload broken off", "upload of something else", "upload read", "upload deleted"],
] as const;
export type Operation = (typeof operations)[number];

/** A shorter run makes fewer in proportion. */
const least = { times: 200, seconds: 300 };

export function tooSeldom(made: ReadonlyMap<string, number>, seconds: number): string[] {
  const wanted = Math.floor((least.times * seconds) / least.seconds);
  const seldom = operations.filter((operation) => (made.get(operation) ?? 0) < wanted);
  return seldom.map((operation) => `${operation} was made ${made.get(operation) ?? 0} times, and not ${wanted}`);
}

export function add(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

/** In one line, by name. */
export function tell(counts: ReadonlyMap<string, number>): string {
  const sorted = [...counts].sort(([left], [right]) => left.localeCompare(right));
  return sorted.map(([what, count]) => `${what} ×${count}`).join(", ");
}
