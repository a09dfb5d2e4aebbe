// Work that is done one after the other, in the order in which it was asked for.

export class OneByOne {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const own = this.#last.then(work);
    this.#last = own.catch(() => {});
    return own;
  }
}
