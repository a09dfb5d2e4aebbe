// Which endpoints of an account an isolate has seen lately: a queue itself refuses when it was deleted since.
import { isRecent } from "../wire/recent.ts";

const rememberedMs = 10_000;
const most = 1000;
const seenAt = new Map<string, number>();

export async function isKnown(key: string, ask: () => Promise<boolean>): Promise<boolean> {
  const now = Date.now();
  if (isRecent(seenAt.get(key) ?? Number.NEGATIVE_INFINITY, rememberedMs, now)) return true;
  if (!(await ask())) return false;
  if (seenAt.size >= most) seenAt.clear();
  seenAt.set(key, now);
  return true;
}
