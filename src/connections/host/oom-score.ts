import { writeFile } from "node:fs/promises";
import type { Clock } from "../../ground/base/index.ts";

const tries = 2;
const pauseMs = 100;

/** How willingly the kernel kills this process when memory runs out: -1000 (never) to 1000 (first). */
export async function setOwnOomScore(score: number, clock: Clock, signal: AbortSignal, root = "/"): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await writeFile(`${root}/proc/self/oom_score_adj`, String(score));
      return;
    } catch (error) {
      if (attempt === tries) throw new Error(`Cannot set the OOM score of this process to ${score}`, { cause: error });
    }
    await clock.sleep(pauseMs, signal);
  }
}
