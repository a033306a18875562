import { ContainerState, PodSandboxState, type RuntimeService } from "../../../connections/cri/index.ts";
import type { Pod } from "../../../ground/model/index.ts";
import { sendJson, untilClientLeaves } from "../http.ts";
import { podList } from "../pod-list.ts";
import type { LocalViews } from "../ports.ts";
import type { ApiMount } from "./router.ts";

/** /pods: what the agent was told to run. */
export function podsService(views: Pick<LocalViews, "pods">): ApiMount {
  const handle = ({ response }: { response: Parameters<typeof sendJson>[0] }): void =>
    sendJson(response, podList(views.pods()));
  return {
    type: "service",
    path: "/pods",
    routes: [{ methods: ["GET"], pattern: "", produces: "application/json", handle }],
  };
}

/** /runningpods/: what the runtime runs, whoever asked for it; only names and images. */
export function runningPodsService(runtime: Pick<RuntimeService, "listPodSandbox" | "listContainers">): ApiMount {
  return {
    type: "service",
    path: "/runningpods/",
    routes: [
      {
        methods: ["GET"],
        pattern: "",
        produces: "application/json",
        handle: async ({ response }) =>
          sendJson(response, podList(await runningPods(runtime, untilClientLeaves(response)))),
      },
    ],
  };
}

async function runningPods(
  runtime: Pick<RuntimeService, "listPodSandbox" | "listContainers">,
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  const [{ items: sandboxes }, { containers }] = await Promise.all([
    runtime.listPodSandbox({ filter: undefined }, { signal }),
    runtime.listContainers(
      {
        filter: { id: "", state: { state: ContainerState.CONTAINER_RUNNING }, podSandboxId: "", labelSelector: {} },
      },
      { signal },
    ),
  ]);
  const pods = new Map<
    string,
    { metadata: NonNullable<Pod["metadata"]>; containers: { name: string; image: string }[] }
  >();
  const podOfSandbox = new Map<string, string>();
  for (const { id, metadata, state } of sandboxes) {
    if (metadata === undefined) continue;
    const { name, namespace, uid } = metadata;
    podOfSandbox.set(id, uid);
    const runs = state === PodSandboxState.SANDBOX_READY || containers.some(({ podSandboxId }) => podSandboxId === id);
    if (runs && !pods.has(uid)) pods.set(uid, { metadata: { name, namespace, uid }, containers: [] });
  }
  for (const { podSandboxId, metadata, image } of containers) {
    const pod = pods.get(podOfSandbox.get(podSandboxId) ?? "");
    pod?.containers.push({ name: metadata?.name ?? "", image: image?.image ?? "" });
  }
  return [...pods.values()].map(({ metadata, containers: running }) => ({ metadata, spec: { containers: running } }));
}
