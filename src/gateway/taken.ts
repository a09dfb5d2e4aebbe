// What the status of an answer says of a request that makes a job: one list for trying again, for giving back and for charging.

/** The service is full or away: its own words, or those of a proxy in front of it that could not connect. */
const outages: ReadonlySet<number> = new Set([503, 521, 523]);

/** No job was made of it, so nothing is owed. After any other failure nobody knows. */
export function isNotTaken(status: number): boolean {
  return (status >= 300 && status < 500) || outages.has(status);
}

/** Not taken now; the same request may be taken in a moment. */
export function mayBeTakenLater(status: number): boolean {
  return status === 429 || outages.has(status);
}
