import type { RuntimeEvent } from "../../connections/cri/index.ts";
import type { Clock } from "../../ground/base/index.ts";
import type { ObservedPod, PodUid } from "../../ground/model/index.ts";

type PodHint = Exclude<RuntimeEvent, { kind: "gap" }>;

/** A runtime may tell of a change before its own lists show it: look again after these waits until they do. */
const lookAgainMs = [10, 20, 40, 80, 160, 320, 640];

/** Turns hints into inspections of single pods. Hints that tell nothing new, as echoes of our own acts, are dropped. */
export async function followRuntimeEvents(ports: FollowPorts, signal: AbortSignal): Promise<void> {
  for await (const hint of ports.subscribe(signal)) {
    if (hint.kind === "gap") {
      ports.somethingMissed();
      continue;
    }
    if (hint.kind === "oom") ports.onOom?.();
    const uid = hint.podUid ?? ports.ownerOf(hint.id) ?? (hint.sandboxId && ports.ownerOf(hint.sandboxId));
    // What is just being made is not known by its id yet; whoever makes it looks at it afterwards.
    if (uid !== undefined) follow(hint, uid, 0, ports, signal);
  }
}

export interface FollowPorts {
  readonly clock: Clock;
  readonly subscribe: (signal: AbortSignal) => AsyncIterable<RuntimeEvent>;
  readonly ownerOf: (id: string) => PodUid | undefined;
  readonly latest: (uid: PodUid) => ObservedPod | undefined;
  readonly runtimeChanged: (uid: PodUid) => void;
  readonly somethingMissed: () => void;
  /** The runtime says that memory ran out somewhere. */
  readonly onOom?: () => void;
}

function follow(hint: PodHint, uid: PodUid, round: number, ports: FollowPorts, signal: AbortSignal): void {
  if (signal.aborted || !isNews(hint, ports.latest(uid))) return;
  ports.runtimeChanged(uid);
  const wait = lookAgainMs[round];
  // Only an end is worth insisting on: it is what others wait for, and nothing of ours would look for it.
  if (hint.kind !== "stopped" || wait === undefined) return;
  ports.clock.after(wait, () => follow(hint, uid, round + 1, ports, signal));
}

function isNews(hint: PodHint, observed: ObservedPod | undefined): boolean {
  const known = [...(observed?.sandboxes ?? []), ...(observed?.containers ?? [])].find(({ id }) => id === hint.id);
  switch (hint.kind) {
    case "created":
      return known === undefined;
    case "started":
      return known?.state !== "running" && known?.state !== "ready";
    case "stopped":
      return known?.state !== "exited" && known?.state !== "notReady";
    case "deleted":
      return known !== undefined;
    case "oom":
    case "changed":
      return true;
  }
}
