// Final results that the meter's alarm fetched for an owner who did not ask in time.

export function resultKey(admission: string): string {
  return `result/${admission}`;
}

export function keptResult(kept: KVNamespace, admission: string): Promise<string | null> {
  return kept.get(resultKey(admission)).catch(() => null);
}
