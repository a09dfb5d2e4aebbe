// Admissions that were released before they came: a caller that lost the answer does not wait for it.

/** No call is under way longer. */
const rememberMs = 60_000;

export class Released {
  readonly #until = new Map<string, number>();

  add(admission: string, now: number): void {
    for (const [earlier, until] of this.#until) if (until <= now) this.#until.delete(earlier);
    this.#until.set(admission, now + rememberMs);
  }

  has(admission: string, now: number): boolean {
    return (this.#until.get(admission) ?? 0) > now;
  }
}
