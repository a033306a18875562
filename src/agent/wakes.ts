import { Topic } from "../ground/base/index.ts";
import type { PodUid } from "../ground/model/index.ts";

/**
 * Where parts that need each other meet: who has news tells the topic, who must act on them listens. It exists before
 * any of them. News carry no payload beyond what they are about; who is woken reads the present truth.
 */
export class Wakes {
  /** Something about this pod may have changed. */
  readonly pod = new Topic<[uid: PodUid]>();
  /** What kept containers of this pod from being made is out of the way, before they are due to be tried again. */
  readonly startable = new Topic<[uid: PodUid]>();
  /** Something that every pod depends on has changed. */
  readonly allPods = new Topic();
  /** What the runtime has of this pod has changed; its full name where the runtime tells it. */
  readonly runtimePod = new Topic<[uid: PodUid, fullName: string | undefined]>();
  /** The runtime was looked through. */
  readonly listed = new Topic<[isFirst: boolean]>();
  /** What pods are judged by has become known, or has changed. */
  readonly decisions = new Topic();
  /** Something that volumes may wait for has happened: a driver came, the cluster attached a volume. */
  readonly volumes = new Topic();
  /** A fact that the Node's status shows has changed. */
  readonly node = new Topic();
  /** No source wants the pod and nobody works on it any more, whether or not it ever ran. */
  readonly left = new Topic<[uid: PodUid]>();
  /** Nothing of the pod is left on the node. */
  readonly gone = new Topic<[uid: PodUid]>();
}
