// Who waits for something of a job: its end, or a piece of its stream.

export class Listeners {
  readonly #ofJobs = new Map<string, Set<() => void>>();

  /** Answers how to stop listening. */
  listen(id: string, listener: () => void): () => void {
    const listeners = this.#ofJobs.get(id) ?? new Set();
    this.#ofJobs.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#ofJobs.delete(id);
    };
  }

  tell(id: string): void {
    for (const listener of [...(this.#ofJobs.get(id) ?? [])]) listener();
  }

  tellAll(): void {
    for (const listeners of [...this.#ofJobs.values()]) for (const listener of listeners) listener();
  }
}
