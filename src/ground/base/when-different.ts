/** Returns a listener that acts only when what `read` gives differs from the last time. */
export function whenDifferent(read: () => string | undefined, act: () => void, first?: string): () => void {
  let last = first;
  return () => {
    const now = read();
    if (now === last) return;
    last = now;
    act();
  };
}
