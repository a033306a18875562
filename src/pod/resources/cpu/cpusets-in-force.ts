import { join } from "node:path";
import type { CgroupLayout } from "../../../connections/host/index.ts";
import { type CgroupNaming, podCgroup, qosClassOf } from "../../../ground/model/index.ts";
import type { CgroupFiles } from "../cgroup-files.ts";
import type { CpusetKeeperPorts } from "./cpuset-keeper.ts";

/** Reads from its cgroup where a container may run. */
export function cpusetsInForce(
  layout: CgroupLayout,
  files: Pick<CgroupFiles, "directories" | "read">,
  naming: () => CgroupNaming,
): CpusetKeeperPorts["inForce"] {
  const mountPoint = layout.version === 2 ? layout.mountPoint : layout.mountPoints.get("cpuset");
  return async ({ pod, id }) => {
    if (mountPoint === undefined || !naming().perQos) return undefined;
    const directory = join(mountPoint, podCgroup(naming(), qosClassOf(pod), pod.metadata.uid));
    // `<id>`, `cri-containerd-<id>.scope`…: runtimes name it after the container.
    const name = (await files.directories(directory)).find((candidate) => candidate.includes(id));
    if (name === undefined) return undefined;
    const text = (await files.read(join(directory, name, "cpuset.cpus"))).trim();
    return text === "" ? undefined : text;
  };
}
