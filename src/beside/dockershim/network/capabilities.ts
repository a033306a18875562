import type { PodSandboxConfig, PortMapping } from "../../../connections/cri/index.ts";
import { tryParseQuantity, wholeUnits } from "../../../ground/model/index.ts";
import { protocolWord } from "../mapping/sandbox-body.ts";

/** A burst that never ends: what is limited is the rate. */
const burst = 2_147_483_647;

/** What plugins may want to know of the pod, by the name of the capability. */
export function capabilitiesOf(config: PodSandboxConfig, podCidr: string): Record<string, unknown> {
  const bandwidth = bandwidthOf(config.annotations);
  return {
    ...portCapability(config.portMappings),
    ...(bandwidth !== undefined && { bandwidth }),
    ...(podCidr !== "" && { ipRanges: [[{ subnet: podCidr.split(",")[0] }]] }),
  };
}

export function portCapability(
  mappings: readonly Pick<PortMapping, "protocol" | "containerPort" | "hostPort" | "hostIp">[],
) {
  const portMappings = mappings
    .filter(({ hostPort }) => hostPort !== 0)
    .map(({ protocol, containerPort, hostPort, hostIp }) => ({
      hostPort,
      containerPort,
      protocol: protocolWord(protocol),
      hostIP: hostIp,
    }));
  return portMappings.length === 0 ? {} : { portMappings };
}

function bandwidthOf(annotations: Readonly<Record<string, string>>): object | undefined {
  const ingress = bitsPerSecond(annotations["kubernetes.io/ingress-bandwidth"]);
  const egress = bitsPerSecond(annotations["kubernetes.io/egress-bandwidth"]);
  if (ingress === undefined && egress === undefined) return undefined;
  return {
    ...(ingress !== undefined && { ingressRate: ingress, ingressBurst: burst }),
    ...(egress !== undefined && { egressRate: egress, egressBurst: burst }),
  };
}

function bitsPerSecond(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = tryParseQuantity(text);
  return value === undefined ? undefined : Number(wholeUnits(value));
}
