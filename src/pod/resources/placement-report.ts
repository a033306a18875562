import { type IdentifiedPod, isSidecar, type Pod, qosClassOf } from "../../ground/model/index.ts";
import type { PlacementSettings } from "./placement-settings.ts";
import type { ContainerView, PlacementView } from "./placement-view.ts";

/** Who has which CPUs and memory, as JSON: for `nodelet resources`. */
export function placementReport(view: PlacementView, settings: PlacementSettings, pods: readonly Pod[]): object {
  const { policy, scope } = settings.alignment;
  const byUid = new Map(pods.map((pod) => [pod.metadata?.uid, pod]));
  return {
    cpuManagerPolicy: settings.cpu === undefined ? "none" : "static",
    memoryManagerPolicy: settings.memory === undefined ? "None" : "Static",
    topologyManagerPolicy: policy,
    topologyManagerScope: scope,
    ...(view.cpu === undefined
      ? {}
      : { cpus: { reserved: `${view.cpu.reserved}`, shared: `${view.cpu.shared}`, free: `${view.cpu.free}` } }),
    nodes: view.nodes.map(({ id, cpus, memoryBytes, memory, group }) => ({
      id,
      cpus: String(cpus),
      ...(view.cpu === undefined
        ? {}
        : { exclusiveCpus: String(cpus.and(view.cpu.exclusive)), freeCpus: String(cpus.and(view.cpu.free)) }),
      memoryBytes,
      ...(memory.size === 0 ? {} : { memory: Object.fromEntries(memory), group }),
    })),
    containers: view.containers.map((own) => containerReport(own, byUid.get(own.uid))),
  };
}

function containerReport({ uid, container, cpus, memory }: ContainerView, pod: Pod | undefined): object {
  return {
    ...(pod?.metadata === undefined ? {} : { namespace: pod.metadata.namespace, pod: pod.metadata.name }),
    uid,
    container,
    ...(cpus === undefined ? {} : { cpus: String(cpus) }),
    ...(memory.length === 0 ? {} : { memory }),
    why: whyOf({ container, cpus, memory }, pod),
  };
}

function whyOf({ container, cpus, memory }: Omit<ContainerView, "uid">, pod: Pod | undefined): string {
  if (pod?.spec === undefined) return "the pod is not known any more; what it had is free when its source has spoken";
  const inits = pod.spec.initContainers ?? [];
  const spec = [...inits, ...pod.spec.containers].find(({ name }) => name === container);
  const asks = [
    ...(cpus === undefined ? [] : [`${spec?.resources?.requests?.["cpu"] ?? cpus.size} whole CPUs`]),
    ...memory.map(({ type }) => `${spec?.resources?.requests?.[type] ?? ""} ${type}`.trim()),
  ];
  const isInit = inits.some((init) => init.name === container && !isSidecar(init));
  const again = isInit ? "; later containers of the pod use it again" : "";
  return `${qosClassOf(pod as IdentifiedPod)}, asks for ${asks.join(" and ")}${again}`;
}
