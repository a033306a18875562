import { useEffect, useState } from "preact/hooks";
import { ask } from "./ask.ts";

/** Asks the agent now and again while the page is seen; the last answer stays when the next does not come. */
export function useAsked<Answer>(
  path: string,
  everyMs: number,
): { readonly answer: Answer | undefined; readonly problem: string | undefined; readonly again: () => void } {
  const [answer, setAnswer] = useState<Answer | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const askAgain = async (): Promise<void> => {
      if (document.visibilityState === "visible") {
        try {
          setAnswer(await ask<Answer>(path, left.signal));
          setProblem(undefined);
        } catch (error) {
          if (left.signal.aborted) return;
          setProblem(error instanceof Error ? error.message : String(error));
        }
      }
      if (!left.signal.aborted) timer = setTimeout(() => void askAgain(), everyMs);
    };
    void askAgain();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, turn]);
  return { answer, problem, again: () => setTurn((count) => count + 1) };
}
