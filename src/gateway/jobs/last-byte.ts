// Of a body that streams: whether its last byte goes out, or it is cut off before. Whoever comes first decides.

export class LastByte {
  #first: "sent" | "cut" | undefined;

  /** Whether it may go. */
  send(): boolean {
    this.#first ??= "sent";
    return this.#first === "sent";
  }

  /** Whether it stays here, so that nobody has all of the body. */
  cut(): boolean {
    this.#first ??= "cut";
    return this.#first === "cut";
  }
}
