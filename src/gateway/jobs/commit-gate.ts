// Decides once whether a streamed body is completed or cut off: the first of `tryCommit` and `tryAbort` wins.

export class CommitGate {
  #first: "sent" | "cut" | undefined;

  /** True if the last byte may be sent. */
  tryCommit(): boolean {
    this.#first ??= "sent";
    return this.#first === "sent";
  }

  /** True if the last byte was never sent: the upstream cannot have the whole body. */
  tryAbort(): boolean {
    this.#first ??= "cut";
    return this.#first === "cut";
  }
}
