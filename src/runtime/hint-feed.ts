import type { ContainerHint } from "../cri/index.ts";
import type { ObservedPod, PodUid } from "../model/index.ts";

/** Turns hints into inspections of single pods. Hints that tell nothing new, as echoes of our own acts, are dropped. */
export async function followHints(ports: HintFeedPorts, signal: AbortSignal): Promise<void> {
  for await (const hint of ports.subscribe(signal)) {
    if (hint.kind === "gap") {
      ports.somethingMissed();
      continue;
    }
    const uid = hint.podUid ?? ports.ownerOf(hint.id) ?? (hint.sandboxId && ports.ownerOf(hint.sandboxId));
    // What is just being made is not known by its id yet; whoever makes it looks at it afterwards.
    if (uid === undefined) continue;
    if (isNews(hint, ports.latest(uid))) ports.runtimeChanged(uid);
  }
}

export interface HintFeedPorts {
  readonly subscribe: (signal: AbortSignal) => AsyncIterable<ContainerHint>;
  readonly ownerOf: (id: string) => PodUid | undefined;
  readonly latest: (uid: PodUid) => ObservedPod | undefined;
  readonly runtimeChanged: (uid: PodUid) => void;
  readonly somethingMissed: () => void;
}

function isNews(hint: Exclude<ContainerHint, { kind: "gap" }>, observed: ObservedPod | undefined): boolean {
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
