// Finds out whether a worker is still connected after a long poll: one that left shows it only when something is sent.

/**
 * The first write is answered by a reset, the next one is refused, and then the runtime knows. A busy machine needs one
 * more, and longer to hear of it.
 */
const pausesMs = [10, 15, 25];
/** A write that takes longer never ends: the response was dropped before it began. */
const writeTimeoutMs = 1000;
/** JSON may begin with it. */
const blank = new TextEncoder().encode(" ");

/** Throws if the client is gone. */
export async function probeConnection(response: WritableStream, signal: AbortSignal): Promise<void> {
  const writer = response.getWriter();
  try {
    for (const pauseMs of pausesMs) {
      await Promise.race([writer.write(blank), timeLimit()]);
      await scheduler.wait(pauseMs);
      signal.throwIfAborted();
    }
  } finally {
    writer.releaseLock();
  }
}

async function timeLimit(): Promise<never> {
  await scheduler.wait(writeTimeoutMs);
  throw new Error("the write took too long");
}
