// Calls that wait: for an end, for the time to be over, or for their caller to leave.

/** What ended the wait: what it waited for, the time, or its caller's leaving. */
export type Ending = "woken" | "over" | "left";

export class HeldCalls {
  /** By the ticket that the caller chose. */
  readonly #leave = new Map<string, () => void>();

  async hold(ticket: string, ms: number, listen: (wake: () => void) => () => void): Promise<Ending> {
    const { promise, resolve } = Promise.withResolvers<Ending>();
    const timer = setTimeout(() => resolve("over"), ms);
    const stopListening = listen(() => resolve("woken"));
    this.#leave.set(ticket, () => resolve("left"));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      stopListening();
      this.#leave.delete(ticket);
    }
  }

  leave(ticket: string): void {
    this.#leave.get(ticket)?.();
  }
}
