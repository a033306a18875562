import { PodSandboxConfig } from "../../../connections/cri/index.ts";
import { cgroupParent, type IdentifiedPod, qosClassOf } from "../../../ground/model/index.ts";
import type { SandboxContext } from "./context.ts";
import { type Notice, podDns } from "./dns.ts";
import { kernelHostname, type PodHostname, podHostname } from "./hostname.ts";
import { sandboxAnnotations, sandboxLabels } from "./labels.ts";
import { podNamespaces } from "./namespaces.ts";
import { podLogDirectory } from "./paths.ts";
import { portMappings } from "./ports.ts";
import { overheadResources, sandboxResources } from "./resources.ts";
import { sandboxSecurityContext } from "./security-context.ts";
import { podSysctls } from "./sysctls.ts";
import { userNamespaceOf } from "./user-namespace.ts";

export interface SandboxDescription {
  readonly config: PodSandboxConfig;
  /** Worth an event when a sandbox is made from it, not each time the description is needed again. */
  readonly notices: readonly Notice[];
}

/** Throws ConfigError when the pod asks for what this node or runtime cannot give. */
export async function sandboxConfig(
  pod: IdentifiedPod,
  attempt: number,
  context: SandboxContext,
): Promise<SandboxDescription> {
  const { name, namespace, uid } = pod.metadata;
  const dns = podDns(pod, context.dns);
  const namespaces = podNamespaces(pod, await userNamespaceOf(pod, context));
  const config = PodSandboxConfig.fromPartial({
    metadata: { name, namespace, uid, attempt },
    hostname: pod.spec.hostNetwork === true ? "" : kernelHostname(hostnameIn(pod, context), pod.spec),
    logDirectory: podLogDirectory(context, pod),
    dnsConfig: {
      servers: [...dns.config.nameservers],
      searches: [...dns.config.searches],
      options: [...dns.config.options],
    },
    portMappings: portMappings(pod),
    labels: sandboxLabels(pod),
    annotations: sandboxAnnotations(pod),
    linux: {
      cgroupParent: cgroupParent(context.cgroups, qosClassOf(pod), uid),
      sysctls: podSysctls(pod),
      resources: sandboxResources(pod, context, context.podHasExclusiveCpus),
      overhead: overheadResources(pod, context),
      securityContext: sandboxSecurityContext(pod, { namespaces, volumeGroups: context.volumeGroups }),
    },
  });
  return { config, notices: dns.notices };
}

/** The pod's name on the network, as this node's settings make it. */
export function hostnameIn(pod: IdentifiedPod, { dns, gates }: Pick<SandboxContext, "dns" | "gates">): PodHostname {
  return podHostname(pod, { clusterDomain: dns.clusterDomain, overrideAllowed: gates.hostnameOverride });
}
