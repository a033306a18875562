import { isNewer } from "../../connections/kube/index.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";

/** What the API server answered to our own patches, which is newer than the watch until the watch has caught up. */
export class PatchAnswers {
  readonly #answers = new Map<string, IdentifiedPod>();

  set(pod: IdentifiedPod): void {
    this.#answers.set(pod.metadata.uid, pod);
  }

  delete(uid: string): void {
    this.#answers.delete(uid);
  }

  /** After a list: it is the truth. A server that was set back to an older state no longer has what it answered. */
  clear(): void {
    this.#answers.clear();
  }

  /** The newer of what the watch says and what was answered. */
  newest(watched: IdentifiedPod | undefined): IdentifiedPod | undefined {
    const answer = watched === undefined ? undefined : this.#answers.get(watched.metadata.uid);
    return answer !== undefined && isNewer(answer, watched) ? answer : watched;
  }
}
