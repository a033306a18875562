import { useEffect, useState } from "preact/hooks";

/** Who looks away for a moment finds everything as it was. */
const hiddenMs = 20_000;

const listeners = new Set<() => void>();
let isSeenNow = document.visibilityState === "visible";
let timer: ReturnType<typeof setTimeout> | undefined;

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (document.visibilityState === "visible") tell(true);
  else timer = setTimeout(() => tell(false), hiddenMs);
});

function tell(isSeen: boolean): void {
  if (isSeen === isSeenNow) return;
  isSeenNow = isSeen;
  for (const listener of listeners) listener();
}

/**
 * Whether somebody may look at the page. Browsers have six connections for all pages of one address: one that nobody has
 * seen for a while gives its own up, or a few tabs would stop all others.
 */
export function isSeen(): boolean {
  return isSeenNow;
}

/** Returns how to stop listening. */
export function onSeen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function untilSeen(): Promise<void> {
  return new Promise((resolve) => {
    if (isSeenNow) return resolve();
    const stop = onSeen(() => {
      if (!isSeenNow) return;
      stop();
      resolve();
    });
  });
}

export function useIsSeen(): boolean {
  const [, redraw] = useState(0);
  useEffect(() => onSeen(() => redraw((count) => count + 1)), []);
  return isSeenNow;
}
