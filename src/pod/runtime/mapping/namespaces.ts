import { NamespaceMode, NamespaceOption, type UserNamespace } from "../../../connections/cri/index.ts";
import type { Container, IdentifiedPod } from "../../../ground/model/index.ts";
import { ConfigError } from "./errors.ts";

export function podNamespaces({ spec }: IdentifiedPod, userNamespace: UserNamespace): NamespaceOption {
  return NamespaceOption.fromPartial({
    network: spec.hostNetwork === true ? NamespaceMode.NODE : NamespaceMode.POD,
    ipc: spec.hostIPC === true ? NamespaceMode.NODE : NamespaceMode.POD,
    pid: pidMode(spec),
    usernsOptions: userNamespace,
  });
}

function pidMode(spec: IdentifiedPod["spec"]): NamespaceMode {
  if (spec.hostPID === true) return NamespaceMode.NODE;
  return spec.shareProcessNamespace === true ? NamespaceMode.POD : NamespaceMode.CONTAINER;
}

/** The pod's namespaces, except that an ephemeral container may look into the processes of another container. */
export function containerNamespaces(
  pod: IdentifiedPod,
  container: Container,
  ofPod: NamespaceOption,
  containerIdOf: (name: string) => string | undefined,
): NamespaceOption {
  const ephemeral = pod.spec.ephemeralContainers?.find((one) => one.name === container.name);
  const target = ephemeral?.targetContainerName;
  if (!target) return ofPod;
  const targetId = containerIdOf(target);
  if (targetId === undefined) throw new ConfigError(`unable to find target container ${target}`);
  return ofPod.pid === NamespaceMode.CONTAINER ? { ...ofPod, pid: NamespaceMode.TARGET, targetId } : ofPod;
}
