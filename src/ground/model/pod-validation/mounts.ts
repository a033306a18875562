import type { Container, Volume, VolumeDevice, VolumeMount } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkDescendingPath } from "./paths.ts";

/** The volumes of the pod by name. */
export type VolumesByName = ReadonlyMap<string, Volume>;

export function checkMounts(container: Container, volumes: VolumesByName, path: string, problems: ProblemList): void {
  const { volumeMounts = [], volumeDevices = [] } = container;
  const mountPaths = new Set<string>();
  for (const [index, mount] of volumeMounts.entries()) {
    const at = `${path}.volumeMounts[${index}]`;
    const { name, mountPath } = mount;
    if (name === "") problems.required(`${at}.name`);
    if (!volumes.has(name)) problems.notFound(`${at}.name`, name);
    if (mountPath === "") problems.required(`${at}.mountPath`);
    if (mountPaths.has(mountPath)) problems.invalid(`${at}.mountPath`, mountPath, "must be unique");
    mountPaths.add(mountPath);
    if (volumeDevices.some((device) => device.name === name)) {
      problems.invalid(`${at}.name`, name, "must not already exist in volumeDevices");
    }
    if (volumeDevices.some(({ devicePath }) => devicePath === mountPath)) {
      problems.invalid(`${at}.mountPath`, mountPath, "must not already exist as a path in volumeDevices");
    }
    checkSubPath(mount, at, problems);
    checkPropagation(mount, container, at, problems);
  }
  checkDevices(volumeDevices, volumeMounts, volumes, `${path}.volumeDevices`, problems);
}

function checkSubPath({ subPath = "", subPathExpr = "" }: VolumeMount, path: string, problems: ProblemList): void {
  if (subPath !== "") checkDescendingPath(subPath, `${path}.subPath`, problems);
  if (subPathExpr === "") return;
  if (subPath !== "") {
    problems.invalid(`${path}.subPathExpr`, subPathExpr, "subPathExpr and subPath are mutually exclusive");
  }
  checkDescendingPath(subPathExpr, `${path}.subPathExpr`, problems);
}

const propagations: readonly string[] = ["Bidirectional", "HostToContainer", "None"];
const recursiveModes: readonly string[] = ["Disabled", "Enabled", "IfPossible"];

function checkPropagation(mount: VolumeMount, container: Container, path: string, problems: ProblemList): void {
  const { mountPropagation, recursiveReadOnly, readOnly } = mount;
  if (mountPropagation !== undefined) {
    if (!propagations.includes(mountPropagation)) {
      problems.unsupported(`${path}.mountPropagation`, mountPropagation, propagations);
    }
    if (mountPropagation === "Bidirectional" && container.securityContext?.privileged !== true) {
      problems.forbidden(
        `${path}.mountPropagation`,
        "Bidirectional mount propagation is available only to privileged containers",
      );
    }
  }
  if (recursiveReadOnly === undefined || recursiveReadOnly === "Disabled") return;
  if (!recursiveModes.includes(recursiveReadOnly)) {
    problems.unsupported(`${path}.recursiveReadOnly`, recursiveReadOnly, recursiveModes);
    return;
  }
  if (readOnly !== true) {
    problems.forbidden(`${path}.recursiveReadOnly`, "may only be specified when readOnly is true");
  }
  if (mountPropagation !== undefined && mountPropagation !== "None") {
    problems.forbidden(
      `${path}.recursiveReadOnly`,
      "may only be specified when mountPropagation is None or not specified",
    );
  }
}

function checkDevices(
  devices: readonly VolumeDevice[],
  mounts: readonly VolumeMount[],
  volumes: VolumesByName,
  path: string,
  problems: ProblemList,
): void {
  const names = new Set<string>();
  const devicePaths = new Set<string>();
  for (const [index, { name, devicePath }] of devices.entries()) {
    const at = `${path}[${index}]`;
    const volume = volumes.get(name);
    if (name === "") problems.required(`${at}.name`);
    if (names.has(name)) problems.invalid(`${at}.name`, name, "must be unique");
    if (volume === undefined) problems.notFound(`${at}.name`, name);
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      problems.invalid(
        `${at}.name`,
        name,
        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
      );
    }
    if (devicePath === "") problems.required(`${at}.devicePath`);
    if (devicePaths.has(devicePath)) problems.invalid(`${at}.devicePath`, devicePath, "must be unique");
    if (devicePath.split("/").includes("..")) {
      problems.invalid(`${at}.devicePath`, devicePath, "can not contain backsteps ('..')");
    }
    if (mounts.some((mount) => mount.name === name)) {
      problems.invalid(`${at}.name`, name, "must not already exist in volumeMounts");
    }
    if (mounts.some(({ mountPath }) => mountPath === devicePath)) {
      problems.invalid(`${at}.devicePath`, devicePath, "must not already exist as a path in volumeMounts");
    }
    names.add(name);
    devicePaths.add(devicePath);
  }
}
