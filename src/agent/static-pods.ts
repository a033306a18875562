import { type Logger, messageOf } from "../base/index.ts";
import type { RuntimeService } from "../cri/index.ts";
import { configSourceAnnotation } from "../model/index.ts";
import { parseContainerAnnotations, runtimeLabels } from "../runtime/index.ts";
import type { StartedStaticPod } from "../sources/index.ts";

/** The pods, running or done, that were started from manifest files by whichever agent; newest first. */
export async function listStaticPods(
  runtime: RuntimeService,
  log: Logger,
  signal: AbortSignal,
): Promise<readonly StartedStaticPod[]> {
  try {
    const [{ items }, { containers }] = await Promise.all([
      runtime.listPodSandbox({ filter: undefined }, { signal }),
      runtime.listContainers({ filter: undefined }, { signal }),
    ]);
    const inOrder = [...containers].sort((a, b) => Number(a.createdAt - b.createdAt));
    return items
      .filter(({ annotations }) => annotations[configSourceAnnotation] === "file")
      .sort((a, b) => Number(b.createdAt - a.createdAt))
      .map(({ id, labels, createdAt }) => ({
        namespace: labels[runtimeLabels.podNamespace] ?? "",
        name: labels[runtimeLabels.podName] ?? "",
        uid: labels[runtimeLabels.podUid] ?? "",
        startedAtMs: Number(createdAt) / 1e6,
        labels,
        containerHashes: new Map(
          inOrder
            .filter(({ podSandboxId }) => podSandboxId === id)
            .map((container) => [
              container.labels[runtimeLabels.containerName] ?? "",
              parseContainerAnnotations(container.annotations).hash,
            ]),
        ),
      }));
  } catch (error) {
    signal.throwIfAborted();
    log.warn("Cannot list what runs; static pods that another agent started will be started anew", {
      reason: messageOf(error),
    });
    return [];
  }
}
