// When `npm start` ends: told by a signal, or because npm is gone. Miniflare ends workerd with this process.

const askEveryMs = 500;

export function endWhenTold(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(0));
  endWithNpm(process.ppid);
}

/** A signal to npm ends its shell, which need not pass it on: then nobody would be left to end this. */
function endWithNpm(parent: number): void {
  if (process.env["npm_lifecycle_event"] === undefined) return;
  setInterval(() => process.ppid === parent || process.exit(0), askEveryMs).unref();
}
