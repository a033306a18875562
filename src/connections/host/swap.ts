/** The kubelet's rule for swap, in its words. */
export function checkSwap(failSwapOn: boolean, swaps: readonly string[]): void {
  if (!failSwapOn || swaps.length === 0) return;
  throw new Error(
    `running with swap on is not supported, please disable swap or set --fail-swap-on flag to false (found ${swaps.join(", ")})`,
  );
}
