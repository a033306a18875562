import { useEffect, useState } from "preact/hooks";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Draws again once a second while the page is seen; one clock for all that counts. */
export function useTick(): void {
  const [, redraw] = useState(0);
  useEffect(() => {
    const tick = (): void => redraw((count) => count + 1);
    listeners.add(tick);
    timer ??= setInterval(tickAll, 1000);
    return () => {
      listeners.delete(tick);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
}

function tickAll(): void {
  if (document.visibilityState === "visible") for (const listener of listeners) listener();
}
