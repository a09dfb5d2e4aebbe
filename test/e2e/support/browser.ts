// As much of a browser and of React as the README's page and hook use.

export class PageEvents {
  static readonly opened: PageEvents[] = [];
  readonly url: string;
  readonly #listeners = new Map<string, (event: { data: string }) => void>();
  readonly #leaving = new AbortController();
  /** Settles when the server or the page has ended it. */
  readonly ended: Promise<void>;

  constructor(url: string) {
    this.url = url;
    PageEvents.opened.push(this);
    this.ended = this.#read().catch(() => {});
  }

  get isClosed(): boolean {
    return this.#leaving.signal.aborted;
  }

  addEventListener(name: string, listener: (event: { data: string }) => void): void {
    this.#listeners.set(name, listener);
  }

  close(): void {
    this.#leaving.abort();
  }

  /** No header of its own, as a browser sends none; it does not come back, either. */
  async #read(): Promise<void> {
    const response = await fetch(this.url, { signal: this.#leaving.signal });
    let text = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        this.#tell(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  #tell(event: string): void {
    const [, name = ""] = /^event: (.*)$/m.exec(event) ?? [];
    const [, data = ""] = /^data: (.*)$/m.exec(event) ?? [];
    this.#listeners.get(name)?.({ data });
  }
}

/** A component that is rendered anew whenever a state changes; effects run once. */
export class Component<T> {
  readonly #slots: unknown[] = [];
  readonly #cleanups: (() => void)[] = [];
  readonly #hook: () => T;
  #slot = 0;
  #shown: T | undefined;

  readonly hooks = {
    useState: (first: unknown) => {
      const slot = this.#claim(first);
      const set = (value: unknown) => {
        this.#slots[slot] = value;
        this.#render();
      };
      return [this.#slots[slot], set];
    },
    useRef: () => this.#slots[this.#claim({ current: undefined })],
    useEffect: (effect: () => (() => void) | undefined) => {
      const slot = this.#slot++;
      if (slot in this.#slots) return;
      this.#slots[slot] = true;
      const cleanup = effect();
      if (cleanup) this.#cleanups.push(cleanup);
    },
  };

  constructor(hook: () => T) {
    this.#hook = hook;
  }

  #claim(first: unknown): number {
    const slot = this.#slot++;
    if (!(slot in this.#slots)) this.#slots[slot] = first;
    return slot;
  }

  #render(): void {
    this.#slot = 0;
    this.#shown = this.#hook();
  }

  get shown(): T {
    if (this.#shown === undefined) this.#render();
    return this.#shown as T;
  }

  unmount(): void {
    for (const cleanup of this.#cleanups) cleanup();
  }
}
