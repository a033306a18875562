import { type Device, Mount, MountPropagation } from "../../../connections/cri/index.ts";
import type { EngineMount } from "../engine/index.ts";
import { MappingError } from "./security.ts";

export interface MountTraits {
  readonly api: number;
  /** The daemon labels files for SELinux. */
  readonly selinux: boolean;
}

/** Docker's own words for it; private is what it does unasked. */
const propagations = new Map<MountPropagation, string>([
  [MountPropagation.PROPAGATION_PRIVATE, ""],
  [MountPropagation.PROPAGATION_HOST_TO_CONTAINER, "rslave"],
  [MountPropagation.PROPAGATION_BIDIRECTIONAL, "rshared"],
]);

/**
 * Mounts in the form that takes any path. Only that with a colon between its parts can ask for a label of SELinux, so
 * it is used where labels are wanted and the daemon gives them.
 */
export function mountFields(mounts: readonly Mount[], traits: MountTraits): { Mounts: object[]; Binds: string[] } {
  const fields = { Mounts: [] as object[], Binds: [] as string[] };
  for (const mount of mounts) {
    if (mount.image !== undefined) throw new MappingError("docker cannot mount images as volumes");
    if (mount.uidMappings.length + mount.gidMappings.length > 0) {
      throw new MappingError("docker cannot map the owners of mounted files");
    }
    const isPlain = !`${mount.hostPath}${mount.containerPath}`.includes(":");
    if (mount.selinuxRelabel && traits.selinux && isPlain) fields.Binds.push(bindOf(mount));
    else fields.Mounts.push(mountOf(mount, traits.api));
  }
  return fields;
}

function mountOf(mount: Mount, api: number): object {
  const propagation = propagations.get(mount.propagation) ?? "";
  return {
    Type: "bind",
    Source: mount.hostPath,
    Target: mount.containerPath,
    ReadOnly: mount.readonly,
    BindOptions: {
      ...(propagation !== "" && { Propagation: propagation }),
      // From this version on, mounts below a read-only one are read-only too unless told otherwise.
      ...(api >= 44 && mount.readonly && !mount.recursiveReadOnly && { ReadOnlyNonRecursive: true }),
    },
  };
}

function bindOf(mount: Mount): string {
  const options = [mount.readonly ? "ro" : "", "Z", propagations.get(mount.propagation) ?? ""].filter(
    (word) => word !== "",
  );
  return `${mount.hostPath}:${mount.containerPath}:${options.join(",")}`;
}

export function mountMessage({ source, target, readOnly, propagation }: EngineMount): Mount {
  const found = [...propagations].find(([, word]) => word === propagation)?.[0];
  return Mount.fromPartial({
    hostPath: source,
    containerPath: target,
    readonly: readOnly,
    propagation: found ?? MountPropagation.PROPAGATION_PRIVATE,
  });
}

export function deviceFields(devices: readonly Device[]): object[] {
  return devices.map(({ hostPath, containerPath, permissions }) => ({
    PathOnHost: hostPath,
    PathInContainer: containerPath,
    CgroupPermissions: permissions,
  }));
}
