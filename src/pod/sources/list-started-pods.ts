import { ContainerState, PodSandboxState, type RuntimeService, untilAnswered } from "../../connections/cri/index.ts";
import type { Clock, Logger } from "../../ground/base/index.ts";
import { configSourceAnnotation } from "../../ground/model/index.ts";
import { parseContainerAnnotations, runtimeLabels } from "../runtime/index.ts";
import type { StartedPod } from "./started-pod.ts";

/**
 * The pods, running or done, that the runtime has sandboxes of, whichever agent made them. Those that live come first:
 * the time of day, by which the newest come first, may have been set back since.
 */
export async function listStartedPods(runtime: RuntimeService, signal: AbortSignal): Promise<readonly StartedPod[]> {
  const [{ items }, { containers }] = await Promise.all([
    runtime.listPodSandbox({ filter: undefined }, { signal }),
    runtime.listContainers({ filter: undefined }, { signal }),
  ]);
  // By attempt before time, which may have been set back: of instances of one name, the newest comes last.
  const oldestFirst = [...containers].sort(
    (a, b) => (a.metadata?.attempt ?? 0) - (b.metadata?.attempt ?? 0) || Number(a.createdAt - b.createdAt),
  );
  const started = [...items]
    .sort((a, b) => Number(b.createdAt - a.createdAt))
    .map(({ id, labels, annotations, state, createdAt }) => {
      const own = oldestFirst.filter(({ podSandboxId }) => podSandboxId === id);
      return {
        namespace: labels[runtimeLabels.podNamespace] ?? "",
        name: labels[runtimeLabels.podName] ?? "",
        uid: labels[runtimeLabels.podUid] ?? "",
        source: annotations[configSourceAnnotation] ?? "",
        startedAtMs: Number(createdAt) / 1e6,
        isLive:
          state === PodSandboxState.SANDBOX_READY || own.some((one) => one.state === ContainerState.CONTAINER_RUNNING),
        labels,
        containerHashes: new Map(
          own.map((one) => [
            one.labels[runtimeLabels.containerName] ?? "",
            parseContainerAnnotations(one.annotations).hash,
          ]),
        ),
      };
    });
  return [...started.filter(({ isLive }) => isLive), ...started.filter(({ isLive }) => !isLive)];
}

/** Those that were started from manifest files. Waits for the runtime: what it does not tell would be started anew. */
export async function listStaticPods(
  runtime: RuntimeService,
  ports: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<readonly StartedPod[]> {
  const started = await untilAnswered("what runs", () => listStartedPods(runtime, signal), ports, signal);
  return started.filter(({ source }) => source === "file");
}
