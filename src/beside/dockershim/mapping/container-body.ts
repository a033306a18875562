import {
  type ContainerConfig,
  NamespaceMode,
  type NamespaceOption,
  type PodSandboxConfig,
} from "../../../connections/cri/index.ts";
import { createdAtLabel, imageLabel, labelsFor, logPathLabel, sandboxIdLabel } from "./labels.ts";
import { deviceFields, type MountTraits, mountFields } from "./mounts.ts";
import { cgroupParentFor, limitFields } from "./resources.ts";
import { groupsOf, MappingError, securityOptions, userOf } from "./security.ts";
import { signalName } from "./signals.ts";

export interface ContainerTraits extends MountTraits {
  readonly sandboxId: string;
  /** Of Docker's runtimes, as the sandbox has it; empty: its usual one. */
  readonly runtime: string;
  readonly createdAt: bigint;
  readonly logPath: string;
  readonly cgroupDriver: string;
  readonly lowestOomScore: number;
  /** Content of the profile that `seccompFileOf` names. */
  readonly seccomp: string | undefined;
}

const sharedMemoryBytes = 64 * 1024 * 1024;
/** Docker's own log of a container is what ours is made of; it may fall this far behind. */
const engineLog = { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } };

export function containerBody(config: ContainerConfig, sandbox: PodSandboxConfig, traits: ContainerTraits): object {
  const user = userOf(config.linux?.securityContext);
  const ours = {
    [sandboxIdLabel]: traits.sandboxId,
    [logPathLabel]: traits.logPath,
    [createdAtLabel]: String(traits.createdAt),
    [imageLabel]: config.image?.image ?? "",
  };
  return {
    Image: config.image?.image ?? "",
    ...(config.command.length > 0 && { Entrypoint: config.command }),
    ...(config.args.length > 0 && { Cmd: config.args }),
    Env: config.envs.map(({ key, value }) => `${key}=${value.toString("utf8")}`),
    WorkingDir: config.workingDir,
    ...(user !== undefined && { User: user }),
    OpenStdin: config.stdin,
    StdinOnce: config.stdinOnce,
    Tty: config.tty,
    ...signalName(config.stopSignal),
    // Kubernetes has its own probes.
    Healthcheck: { Test: ["NONE"] },
    Labels: labelsFor(config, "container", ours),
    HostConfig: hostConfig(config, sandbox, traits),
  };
}

function hostConfig(config: ContainerConfig, sandbox: PodSandboxConfig, traits: ContainerTraits): object {
  const security = config.linux?.securityContext;
  const sandboxNamespaces = sandbox.linux?.securityContext?.namespaceOptions;
  const privileged = security?.privileged ?? false;
  return {
    // All that a pod shares is the sandbox's, also where that has it from the node.
    NetworkMode: `container:${traits.sandboxId}`,
    IpcMode: `container:${traits.sandboxId}`,
    ...pidMode(security?.namespaceOptions, traits.sandboxId),
    ...(sandboxNamespaces?.network === NamespaceMode.NODE && { UTSMode: "host" }),
    CgroupParent: cgroupParentFor(sandbox.linux?.cgroupParent ?? "", traits.cgroupDriver),
    ...limitFields(config.linux?.resources, traits.lowestOomScore),
    ShmSize: sharedMemoryBytes,
    SecurityOpt: securityOptions(security, traits.seccomp),
    CapAdd: security?.capabilities?.addCapabilities ?? [],
    CapDrop: security?.capabilities?.dropCapabilities ?? [],
    GroupAdd: groupsOf(security),
    Privileged: privileged,
    ReadonlyRootfs: security?.readonlyRootfs ?? false,
    ...(!privileged && security !== undefined && pathFields(security)),
    ...mountFields(config.mounts, traits),
    Devices: deviceFields(config.devices),
    ...cdiFields(config, traits.api),
    LogConfig: engineLog,
    RestartPolicy: { Name: "no" },
    ...(traits.runtime !== "" && { Runtime: traits.runtime }),
  };
}

/** An empty list means that nothing is hidden; without the field Docker hides what it thinks right. */
function pathFields(security: { readonly maskedPaths: string[]; readonly readonlyPaths: string[] }): object {
  return { MaskedPaths: security.maskedPaths, ReadonlyPaths: security.readonlyPaths };
}

function pidMode(namespaces: NamespaceOption | undefined, sandboxId: string): { PidMode?: string } {
  switch (namespaces?.pid) {
    case NamespaceMode.NODE:
      return { PidMode: "host" };
    case NamespaceMode.POD:
      return { PidMode: `container:${sandboxId}` };
    case NamespaceMode.TARGET:
      return { PidMode: `container:${namespaces.targetId}` };
    default:
      return {};
  }
}

/** Devices by the name that a CDI file gives them; Docker knows that from Engine 25 on. */
function cdiFields(config: ContainerConfig, api: number): object {
  if (config.CDIDevices.length === 0) return {};
  if (api < 44) throw new MappingError("this docker cannot give CDI devices: its API must be 1.44 or later");
  return { DeviceRequests: [{ Driver: "cdi", DeviceIDs: config.CDIDevices.map(({ name }) => name) }] };
}
