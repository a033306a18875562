import type { StatusResponse } from "../../connections/cri/index.ts";
import {
  type Container,
  type IdentifiedPod,
  newestOf,
  type ObservedPod,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import type { StarterPorts } from "./container-starter.ts";
import type {
  ContainerContext,
  CpuAndMemoryPlacement,
  DeviceGrants,
  DnsSettings,
  NodeContext,
  SandboxContext,
} from "./mapping/index.ts";

export interface StartContextPorts {
  readonly node: NodeContext;
  /** The node's addresses as they are now; none while none is known. */
  readonly hostIPs: () => readonly string[];
  /** The node's resolver settings as they are now; rejects while they can't be read. */
  readonly readHostDns: () => Promise<DnsSettings["hostDns"]>;
  /** What the runtime says of its handlers. */
  readonly runtimeStatus: { readonly handlers: StatusResponse["runtimeHandlers"] };
  /** The handler that the pod's RuntimeClass names; throws while the class is unknown. */
  readonly runtimeHandlerOf: (pod: IdentifiedPod) => string;
  readonly volumes: {
    groupsOf(uid: PodUid): SandboxContext["volumeGroups"];
    of(uid: PodUid): ContainerContext["volumes"];
    readonly subPaths: ContainerContext["subPaths"];
  };
  /** What the container gets of its devices; rejects while it can't have them. */
  readonly devicesFor: (pod: IdentifiedPod, container: Container, signal: AbortSignal) => Promise<DeviceGrants>;
  readonly services: () => ContainerContext["services"];
  readonly placement: {
    /** Where the container runs; resolves when that would outlive the agent. */
    placeOf(pod: IdentifiedPod, container: string): Promise<CpuAndMemoryPlacement>;
    hasExclusiveCpus(uid: PodUid): boolean;
  };
  readonly readConfigMap: ContainerContext["readConfigMap"];
  readonly readSecret: ContainerContext["readSecret"];
  readonly readVolumeFile: ContainerContext["readVolumeFile"];
}

/** What the descriptions of a pod's sandbox and containers need besides the pod, as it is at the moment of asking. */
export class StartContexts {
  readonly #ports: StartContextPorts;

  constructor(ports: StartContextPorts) {
    this.#ports = ports;
  }

  readonly sandbox: StarterPorts["sandboxContext"] = async (pod) => {
    const hostDns = await this.#ports.readHostDns();
    const context = this.#ofNode(pod);
    return { ...context, dns: { ...context.dns, hostDns } };
  };

  readonly container: StarterPorts["containerContext"] = async ({ pod, container, observed, image }, signal) => {
    const { volumes, services, placement, readConfigMap, readSecret, readVolumeFile } = this.#ports;
    const place = await placement.placeOf(pod, container.name);
    return {
      ...this.#ofNode(pod),
      image,
      podIps: this.podIps(pod, observed),
      volumes: volumes.of(uidOf(pod)),
      services: services(),
      readConfigMap,
      readSecret,
      readVolumeFile,
      placement: place,
      devices: await this.#ports.devicesFor(pod, container, signal),
      subPaths: volumes.subPaths,
      containerIdOf: (name) => newestOf(observed, name)?.id,
    };
  };

  /** As the pod itself has them: those of the node where it shares its network. */
  podIps(pod: IdentifiedPod, observed: ObservedPod | undefined): readonly string[] {
    return pod.spec.hostNetwork === true ? this.#ports.hostIPs() : (observed?.ips ?? []);
  }

  #ofNode(pod: IdentifiedPod): SandboxContext {
    const { node, runtimeStatus, volumes, placement } = this.#ports;
    const name = this.#ports.runtimeHandlerOf(pod);
    const features = runtimeStatus.handlers.find((handler) => handler.name === name)?.features;
    return {
      ...node,
      runtimeHandler: {
        name,
        recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
        userNamespaces: features?.userNamespaces ?? false,
      },
      volumeGroups: volumes.groupsOf(uidOf(pod)),
      podHasExclusiveCpus: placement.hasExclusiveCpus(uidOf(pod)),
    };
  }
}
