import { Mount, MountPropagation } from "../../../connections/cri/index.ts";
import type { Container, IdentifiedPod, VolumeMount } from "../../../ground/model/index.ts";
import type { ContainerImage, DeviceGrants, PodVolume, RuntimeHandlerInfo, SubPaths } from "./context.ts";
import type { ContainerEnv } from "./env.ts";
import { ConfigError } from "./errors.ts";

export interface MountContext {
  readonly volumes: ReadonlyMap<string, PodVolume>;
  readonly runtimeHandler: RuntimeHandlerInfo;
  readonly selinuxEnabled: boolean;
  readonly subPaths: SubPaths;
  readonly image: Pick<ContainerImage, "mounted">;
}

/** The container's volume mounts in the order of its spec. */
export async function volumeMounts(
  pod: IdentifiedPod,
  container: Container,
  env: ContainerEnv,
  context: MountContext,
): Promise<Mount[]> {
  const mounts: Mount[] = [];
  for (const [mountIndex, mount] of (container.volumeMounts ?? []).entries()) {
    const volume = context.volumes.get(mount.name);
    const imageRef = context.image.mounted?.get(mount.name) ?? "";
    if (volume === undefined || volume.type === "block" || (volume.type === "image" && imageRef === "")) {
      throw new ConfigError(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
    }
    const subPath = subPathOf(mount, env);
    const common = {
      containerPath: mount.mountPath.startsWith("/") ? mount.mountPath : `/${mount.mountPath}`,
      propagation: propagationOf(mount),
      recursiveReadOnly: isRecursivelyReadOnly(mount, context.runtimeHandler),
    };
    if (volume.type === "image") {
      mounts.push(
        Mount.fromPartial({
          ...common,
          readonly: true,
          selinuxRelabel: context.selinuxEnabled,
          imageSubPath: subPath,
          image: {
            image: imageRef,
            userSpecifiedImage: volume.image,
            runtimeHandler: context.runtimeHandler.name,
            annotations: { ...pod.metadata.annotations },
          },
        }),
      );
      continue;
    }
    const request = { pod, containerName: container.name, volumeName: mount.name, mountIndex, subPath };
    const hostPath =
      subPath === ""
        ? volume.hostPath
        : await safeSubPath({ ...request, volumePath: volume.hostPath }, context.subPaths);
    mounts.push(
      Mount.fromPartial({
        ...common,
        hostPath,
        readonly: (mount.readOnly ?? false) || volume.readOnly,
        selinuxRelabel: volume.relabel && context.selinuxEnabled,
      }),
    );
  }
  return mounts;
}

export function deviceMounts({ mounts }: DeviceGrants): Mount[] {
  return mounts.map(({ hostPath, containerPath, readOnly }) =>
    Mount.fromPartial({ hostPath, containerPath, readonly: readOnly }),
  );
}

function subPathOf(mount: VolumeMount, env: ContainerEnv): string {
  const subPath = mount.subPathExpr ? env.expandStrictly(mount.subPathExpr) : (mount.subPath ?? "");
  if (subPath.startsWith("/")) throw new ConfigError(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes("..")) {
    throw new ConfigError(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);
  }
  return subPath;
}

/** Errors are told without their cause, which could describe the node's file system to the pod's owner. */
async function safeSubPath(request: Parameters<SubPaths["create"]>[0], subPaths: SubPaths): Promise<string> {
  const what = `volumeMount "${request.volumeName}" of container "${request.containerName}"`;
  try {
    await subPaths.create(request);
  } catch (cause) {
    throw new ConfigError(`failed to create subPath directory for ${what}`, { cause });
  }
  try {
    return await subPaths.prepare(request);
  } catch (cause) {
    throw new ConfigError(`failed to prepare subPath for ${what}`, { cause });
  }
}

function propagationOf({ mountPropagation }: VolumeMount): MountPropagation {
  switch (mountPropagation) {
    case undefined:
    case "None":
      return MountPropagation.PROPAGATION_PRIVATE;
    case "HostToContainer":
      return MountPropagation.PROPAGATION_HOST_TO_CONTAINER;
    case "Bidirectional":
      return MountPropagation.PROPAGATION_BIDIRECTIONAL;
    default:
      throw new ConfigError(`invalid MountPropagation mode: "${mountPropagation}"`);
  }
}

/** Whether mounts below the volume are to be read-only as well. */
function isRecursivelyReadOnly(
  mount: VolumeMount,
  { recursiveReadOnlyMounts: supported }: Pick<RuntimeHandlerInfo, "recursiveReadOnlyMounts">,
): boolean {
  const { recursiveReadOnly: mode, mountPropagation, name } = mount;
  if (mode === undefined || mode === "Disabled") return false;
  const refuse = (problem: string): ConfigError =>
    new ConfigError(`failed to resolve recursive read-only mode: ${problem}`);
  const asked = `volume "${name}" requested recursive read-only mode, but it is`;
  if (!mount.readOnly) throw refuse(`${asked} not read-only`);
  if (mountPropagation !== undefined && mountPropagation !== "None") {
    throw refuse(`${asked} not compatible with propagation "${mountPropagation}"`);
  }
  if (mode === "IfPossible") return supported;
  if (mode !== "Enabled") throw refuse(`unknown recursive read-only mode "${mode}"`);
  if (!supported) throw refuse(`${asked} not supported by the runtime`);
  return true;
}
