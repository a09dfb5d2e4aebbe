// Files share a worker, since the app is imported once for all: what one left behind must not meet the next.
import fc from "fast-check";
import { inject, vi } from "vitest";
import "./one-import.ts";
import "./one-proxy.ts";
import { handedOut } from "../../src/gateway/jobs/handed-out.ts";
import { pendingBinds } from "../../src/gateway/jobs/pending-binds.ts";
import { listenToApp } from "./canary-at-the-door.ts";
import { listenAtExits } from "./canary-at-the-exits.ts";
import { watchForKeys } from "./canary-watch.ts";
import { emptyStorage } from "./empty-storage.ts";

// What passed passes again, here and on every machine. `npm run test:full` by hand draws what nobody has drawn.
const seed = inject("seed");
if (seed !== null) fc.configureGlobal({ seed });
vi.useRealTimers();
vi.restoreAllMocks();
await emptyStorage();
watchForKeys();
listenToApp();
listenAtExits();
// A call of a test ends when all that goes on beside it has: none waits for others that are to come.
pendingBinds.flushMs = 0;
handedOut.everyMs = 0;
