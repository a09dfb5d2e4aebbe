// How often a queue is asked: again where its object restarts, and not where another try makes it worse.
import { beforeEach, expect, it, vi } from "vitest";
import { TookTooLong } from "../../src/isolate/in-time.ts";
import type { QueueStub } from "../../src/platform/queue/queue-calls.ts";
import { callOnce, callToRestart, callToSubmit, callWithRetry } from "../../src/platform/queue-client.ts";

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(scheduler, "wait").mockResolvedValue();
});

const lost = new Error("Network connection lost.");
const overloaded = Object.assign(new Error("Durable Object is overloaded."), { overloaded: true });

it.each([
  ["callWithRetry", callWithRetry, lost, 8, "UNAVAILABLE"],
  ["callWithRetry", callWithRetry, overloaded, 1, "UNAVAILABLE"],
  ["callWithRetry", callWithRetry, new TookTooLong(), 1, "UNAVAILABLE"],
  ["callToSubmit", callToSubmit, lost, 8, "UNAVAILABLE"],
  ["callToSubmit", callToSubmit, overloaded, 1, "UNAVAILABLE"],
  ["callToSubmit", callToSubmit, new TookTooLong(), 1, "UPSTREAM_TIMEOUT"],
  ["callToRestart", callToRestart, lost, 1, "UNAVAILABLE"],
  ["callToRestart", callToRestart, new TookTooLong(), 1, "UPSTREAM_TIMEOUT"],
  ["callOnce", callOnce, lost, 1, "UNAVAILABLE"],
] as const)(
  "%s asks a queue again that broke, and not one that is overloaded or too slow (%#)",
  async (_, ask, fault, times, code) => {
    const health = vi.fn(() => Promise.reject(fault));
    const stub = { health } as unknown as QueueStub;
    await expect(
      ask(
        () => stub,
        (queue) => queue.health(),
      ),
    ).rejects.toMatchObject({ code });
    expect(health).toHaveBeenCalledTimes(times);
  },
);
