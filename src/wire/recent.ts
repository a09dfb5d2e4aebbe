// How long ago a remembered moment was. One that lies ahead of the clock is not recent: the clock was set back since then,
// and nobody waits until it has caught up.

export function isRecent(at: number, withinMs: number, now: number): boolean {
  return at <= now && now < at + withinMs;
}
