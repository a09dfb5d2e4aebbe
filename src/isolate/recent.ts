// Whether a remembered moment is recent. A moment in the future is not: the clock was set back since, and waiting until
// it has caught up could take long.

export function isRecent(at: number, withinMs: number, now: number): boolean {
  return at <= now && now < at + withinMs;
}
