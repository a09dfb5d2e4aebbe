// Micro-USD as people and JSON read it, and what is none.

/** Whatever computed it, nothing else may reach the books. */
export function requireAmounts(...amounts: readonly number[]): void {
  for (const amount of amounts) {
    if (!Number.isSafeInteger(amount) || amount < 0) throw new RangeError(`${amount} is no amount`);
  }
}

export function microUsdAsUsd(micro: number): number {
  return micro / 1e6;
}

/** Decimal, without what floats add. */
export function usdText(micro: number): string {
  return (micro / 1e6).toFixed(6).replace(/\.?0+$/, "");
}
