// Files share a worker, since the app is imported once for all: what one left behind must not meet the next.
import { vi } from "vitest";

vi.useRealTimers();
vi.restoreAllMocks();
