import type { QosClass } from "./qos.ts";

/** How pod cgroups are named on this node. */
export interface CgroupNaming {
  readonly driver: "cgroupfs" | "systemd";
  /** Where `kubepods` lives: "/" or "" for the top, else a path such as "/a/b". */
  readonly root: string;
  /** False: pods have no cgroup of ours and the runtime chooses. */
  readonly perQos: boolean;
}

/** The cgroup of all pods. */
export function kubepodsCgroup(naming: CgroupNaming): string {
  return pathOf(naming, ["kubepods"]);
}

/** The cgroup of a class of pods; Guaranteed pods live directly below `kubepods`. */
export function qosCgroup(naming: CgroupNaming, qos: QosClass): string {
  return pathOf(naming, qosComponents(qos));
}

export function podCgroup(naming: CgroupNaming, qos: QosClass, uid: string): string {
  return pathOf(naming, [...qosComponents(qos), `pod${uid}`]);
}

/** linux.cgroup_parent of the pod's sandbox: the pod's cgroup, or empty when the node has none per pod. */
export function cgroupParent(naming: CgroupNaming, qos: QosClass, uid: string): string {
  return naming.perQos ? podCgroup(naming, qos, uid) : "";
}

/** The uid in the last element of a pod cgroup's path, or undefined when it is no pod's. */
export function podUidOfCgroup(naming: CgroupNaming, element: string): string | undefined {
  if (naming.driver === "cgroupfs") return /^pod(.+)$/.exec(element)?.[1];
  return /(?:^|-)pod([^-]+)\.slice$/.exec(element)?.[1]?.replaceAll("_", "-");
}

/** Whose pod's the cgroup at the path is, or lies in. */
export function podUidInPath(naming: CgroupNaming, path: string): string | undefined {
  return path.split("/").flatMap((element) => podUidOfCgroup(naming, element) ?? [])[0];
}

/** A cgroup that the configuration names: a path, or with systemd a slice ("/system.slice", "kube-agents"). */
export function cgroupNamed(driver: CgroupNaming["driver"], name: string): string {
  if (driver === "cgroupfs") return `/${components(name).join("/")}`;
  const slice = components(name).at(-1) ?? "";
  return slicePath(slice.replace(/\.slice$/, "").split("-"));
}

function qosComponents(qos: QosClass): readonly string[] {
  return qos === "Guaranteed" ? ["kubepods"] : ["kubepods", qos.toLowerCase()];
}

function pathOf(naming: CgroupNaming, below: readonly string[]): string {
  const all = [...components(naming.root), ...below];
  if (naming.driver === "cgroupfs") return `/${all.join("/")}`;
  // "-" separates levels in a slice's name, so inside one level it is written "_".
  return slicePath(all.map((component) => component.replaceAll("-", "_")));
}

/** Where the slice `a-b-c.slice` lives: below `a-b.slice`, below `a.slice`. */
function slicePath(levels: readonly string[]): string {
  return levels.map((_, depth) => `/${levels.slice(0, depth + 1).join("-")}.slice`).join("");
}

function components(path: string): readonly string[] {
  return path.split("/").filter((component) => component !== "");
}
