// Whether a worker is still there after a long poll. One that left shows it only when something is sent.

/**
 * The first write is answered by a reset, the next one is refused, and then the runtime knows. A busy machine needs one
 * more, and longer to hear of it.
 */
const pausesMs = [10, 15, 25];
/** A write that nobody takes so long has nobody to take it: the response was dropped before it was begun. */
const patienceMs = 1000;
/** JSON may begin with it. */
const blank = new TextEncoder().encode(" ");

/** Throws where nobody is there any more. */
export async function knock(door: WritableStream, signal: AbortSignal): Promise<void> {
  const writer = door.getWriter();
  try {
    for (const pauseMs of pausesMs) {
      await Promise.race([writer.write(blank), impatient()]);
      await scheduler.wait(pauseMs);
      signal.throwIfAborted();
    }
  } finally {
    writer.releaseLock();
  }
}

async function impatient(): Promise<never> {
  await scheduler.wait(patienceMs);
  throw new Error("nobody takes what is written");
}
