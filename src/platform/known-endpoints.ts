// Which endpoints of an account an isolate has seen lately: a queue itself refuses when it was deleted since.

const rememberedMs = 10_000;
const most = 1000;
const seen = new Map<string, number>();

export async function isKnown(key: string, ask: () => Promise<boolean>): Promise<boolean> {
  const now = Date.now();
  if ((seen.get(key) ?? 0) > now) return true;
  if (!(await ask())) return false;
  if (seen.size >= most) seen.clear();
  seen.set(key, now + rememberedMs);
  return true;
}
