// Micro-USD as people and JSON read it.

export function microUsdAsUsd(micro: number): number {
  return micro / 1e6;
}

/** Decimal, without what floats add. */
export function usdText(micro: number): string {
  return (micro / 1e6).toFixed(6).replace(/\.?0+$/, "");
}
