import { mkdir } from "node:fs/promises";
import { ContainerConfig, Mount, Signal } from "../../../connections/cri/index.ts";
import { isAbort, messageOf } from "../../../ground/base/index.ts";
import type { Container, IdentifiedPod } from "../../../ground/model/index.ts";
import type { ContainerContext } from "./context.ts";
import { cdiDevices, containerDevices } from "./devices.ts";
import { containerEnv, withDeviceEnv } from "./env.ts";
import { ConfigError, ContainerConfigError } from "./errors.ts";
import { hostsPath, wantsHostsFile, writeHostsFile } from "./hosts-file.ts";
import { containerAnnotations, containerLabels } from "./labels.ts";
import { deviceMounts, volumeMounts } from "./mounts.ts";
import { containerNamespaces, podNamespaces } from "./namespaces.ts";
import { verifyRunAsNonRoot } from "./non-root.ts";
import { containerDirectory, containerLogDirectory, containerLogPath, hostsFilePath } from "./paths.ts";
import { containerResources } from "./resources.ts";
import { hostnameIn } from "./sandbox.ts";
import { containerSecurityContext } from "./security-context.ts";
import { stopSignalOf } from "./stop-signal.ts";
import { createTerminationFile } from "./termination-file.ts";
import { userNamespaceOf } from "./user-namespace.ts";

/**
 * Describes the next instance of a container and makes the files it needs: its log directory, /etc/hosts and the file
 * for its termination message. Whatever goes wrong is a ContainerConfigError, except that the signal was aborted.
 */
export async function containerConfig(
  pod: IdentifiedPod,
  container: Container,
  context: ContainerContext,
  signal: AbortSignal,
): Promise<ContainerConfig> {
  try {
    return await describe(pod, container, context, signal);
  } catch (error) {
    if (isAbort(error, signal)) throw error;
    throw new ContainerConfigError(error);
  }
}

async function describe(
  pod: IdentifiedPod,
  container: Container,
  context: ContainerContext,
  signal: AbortSignal,
): Promise<ContainerConfig> {
  const userNamespace = await userNamespaceOf(pod, context);
  const ofPod = podNamespaces(pod, userNamespace);
  const namespaces = containerNamespaces(pod, container, ofPod, context.containerIdOf);
  const devices = containerDevices(container, context.devices, context.volumes);
  const env = withDeviceEnv(await containerEnv(pod, container, context, signal), context.devices.env);
  const ofVolumes = await volumeMounts(pod, container, env, context);
  verifyRunAsNonRoot(pod, container, context.image);
  const mounts = [
    ...deviceMounts(context.devices),
    ...ofVolumes,
    ...(await hostsMount(pod, container, context)),
    ...(await terminationMount(pod, container, context)),
  ];
  await makeLogDirectory(pod, container, context);
  return ContainerConfig.fromPartial({
    metadata: { name: container.name, attempt: context.restartCount },
    image: { image: context.image.ref, userSpecifiedImage: container.image ?? "" },
    command: (container.command ?? []).map(env.expand),
    args: (container.args ?? []).map(env.expand),
    workingDir: container.workingDir ?? "",
    envs: [...env.variables].map(([key, value]) => ({ key, value })),
    mounts: mounts.map((mount) => ({ ...mount, uidMappings: userNamespace.uids, gidMappings: userNamespace.gids })),
    devices,
    CDIDevices: cdiDevices(context.devices),
    labels: containerLabels(pod, container),
    annotations: containerAnnotations(pod, container, context.restartCount, context.devices.annotations),
    logPath: containerLogPath(container.name, context.restartCount),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    stopSignal: context.gates.containerStopSignals ? stopSignalOf(container) : Signal.RUNTIME_DEFAULT,
    linux: {
      resources: containerResources(pod, container, context, context.placement),
      securityContext: containerSecurityContext(pod, container, { ...context, namespaces }),
    },
  });
}

async function hostsMount(pod: IdentifiedPod, container: Container, context: ContainerContext): Promise<Mount[]> {
  if (!wantsHostsFile(pod, container, context.podIps)) return [];
  const hostPath = hostsFilePath(context, pod.metadata.uid);
  await writeHostsFile(hostPath, pod, { podIps: context.podIps, hostname: hostnameIn(pod, context) });
  return [Mount.fromPartial({ containerPath: hostsPath, hostPath, selinuxRelabel: context.selinuxEnabled })];
}

/** A container can run without a place for its last words, so trouble here is only logged. */
async function terminationMount(pod: IdentifiedPod, container: Container, context: ContainerContext): Promise<Mount[]> {
  if (!container.terminationMessagePath) return [];
  const directory = containerDirectory(context, pod.metadata.uid, container.name);
  try {
    const hostPath = await createTerminationFile(directory);
    const { terminationMessagePath: containerPath } = container;
    return [Mount.fromPartial({ containerPath, hostPath, selinuxRelabel: context.selinuxEnabled })];
  } catch (error) {
    context.log.error("Error on creating termination-log file", error, { directory, container: container.name });
    return [];
  }
}

async function makeLogDirectory(pod: IdentifiedPod, container: Container, context: ContainerContext): Promise<void> {
  try {
    await mkdir(containerLogDirectory(context, pod, container.name), { recursive: true, mode: 0o755 });
  } catch (cause) {
    throw new ConfigError(
      `create container log directory for container ${container.name} failed: ${messageOf(cause)}`,
      { cause },
    );
  }
}
