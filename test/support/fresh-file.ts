// Files share a worker, since the app is imported once for all: what one left behind must not meet the next.
import { reset } from "cloudflare:test";
import { vi } from "vitest";
import { listenToApp } from "./canary-at-the-door.ts";
import { watchForKeys } from "./canary-watch.ts";

vi.useRealTimers();
vi.restoreAllMocks();
await reset();
watchForKeys();
listenToApp();
