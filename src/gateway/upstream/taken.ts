// What the status of an answer says of a request that makes a job: one list for trying again, for giving back and for charging.

/** The service is full or away: its own words, or those of a proxy in front of it that could not connect. */
const outages: ReadonlySet<number> = new Set([503, 521, 523]);

/**
 * Whether the status says that the upstream started no job, so that nothing is charged. After any other failure it is
 * unknown.
 */
export function isNotTaken(status: number): boolean {
  return (status >= 300 && status < 500) || outages.has(status);
}

/** Not taken now; the same request may be taken in a moment. */
export function mayBeTakenLater(status: number): boolean {
  return status === 429 || outages.has(status);
}
