// What a token may be narrowed to: the operations as the routes spell them.

/** `images` and `usage` are the caller's own gallery and account. */
export const operationNames = [
  "run",
  "runsync",
  "estimate",
  "status",
  "status-sync",
  "stream",
  "events",
  "cancel",
  "retry",
  "health",
  "purge-queue",
  "requests",
  "openai",
  "lb",
  "images",
  "uploads",
  "usage",
] as const;
export type OperationName = (typeof operationNames)[number];
