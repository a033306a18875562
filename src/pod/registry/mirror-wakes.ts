import { fullName, type IdentifiedPod, isMirrorPod, isStaticPod } from "../../ground/model/index.ts";
import type { StatusStore } from "../status/index.ts";
import type { MirrorPods } from "./mirror-pods.ts";

/** Looks at the mirror of a static pod again whenever the pod, its mirror or the Node may have changed. */
export function followMirrors(
  mirrors: Pick<MirrorPods, "wake">,
  ports: {
    readonly statuses: Pick<StatusStore, "onChange">;
    /** A pod is not wanted any more and nobody works on it, whether or not it ever ran. */
    readonly onLeft: (listener: () => void) => unknown;
    /** The pods that are wanted, of all sources. */
    readonly wanted: () => readonly IdentifiedPod[];
    readonly apiPods: {
      list(): readonly IdentifiedPod[];
      onChange(listener: (change: { readonly object: IdentifiedPod }) => void): unknown;
      onListed(listener: () => void): unknown;
    };
    readonly onNode: (listener: () => void) => unknown;
  },
): void {
  const { statuses, wanted, apiPods } = ports;
  const wakeWanted = (): void => {
    for (const pod of wanted()) if (isStaticPod(pod)) mirrors.wake(fullName(pod));
  };
  const wakeAll = (): void => {
    for (const pod of apiPods.list()) if (isMirrorPod(pod)) mirrors.wake(fullName(pod));
    wakeWanted();
  };
  statuses.onChange((pod) => {
    if (isStaticPod(pod)) mirrors.wake(fullName(pod));
  });
  ports.onLeft(wakeAll);
  apiPods.onChange(({ object }) => {
    if (isMirrorPod(object)) mirrors.wake(fullName(object));
  });
  apiPods.onListed(wakeAll);
  ports.onNode(wakeWanted);
  // The API server may have answered before anybody listened: a mirror whose pod went while no agent ran would stay.
  wakeAll();
}
