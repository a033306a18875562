import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { MadeUpFiles } from "../../../../test/support/made-up-files.ts";
import { sizedPod } from "../../../../test/support/pinned-pods.ts";
import type { ContainerId } from "../../../ground/model/index.ts";
import { kernelCgroupFiles } from "../cgroup-files.ts";
import { cpusetsInForce } from "./cpusets-in-force.ts";

const pod = sizedPod("11-22", { main: "2" });
const container = { id: "abc" as ContainerId, name: "main", pod };

for (const [version, driver, path] of [
  [1, "cgroupfs", "kubepods/pod11-22/abc"],
  [2, "systemd", "kubepods.slice/kubepods-pod11_22.slice/cri-containerd-abc.scope"],
] as const) {
  test(`read from the container's cgroup: version ${version}, ${driver}`, async () => {
    using files = new MadeUpFiles({ [`cpuset/${path}/cpuset.cpus`]: "1,9\n" });
    const mountPoint = join(files.root, "cpuset");
    const layout =
      version === 1
        ? ({ version, mountPoints: new Map([["cpuset", mountPoint]]), unifiedMountPoint: undefined } as const)
        : ({ version, mountPoint, controllers: ["cpuset"] } as const);
    const naming = { driver, root: "/", perQos: true } as const;
    assert.equal(await cpusetsInForce(layout, kernelCgroupFiles, () => naming)(container), "1,9");
    const other = { ...container, id: "other" as ContainerId };
    assert.equal(await cpusetsInForce(layout, kernelCgroupFiles, () => naming)(other), undefined);
    files.write({ [`cpuset/${path}/cpuset.cpus`]: "\n" });
    assert.equal(await cpusetsInForce(layout, kernelCgroupFiles, () => naming)(container), undefined);
  });
}

test("where pods have no cgroups of ours, or there is no controller, nothing can be told", async () => {
  const layout = { version: 1, mountPoints: new Map<string, string>(), unifiedMountPoint: undefined } as const;
  const naming = { driver: "cgroupfs", root: "/", perQos: false } as const;
  assert.equal(await cpusetsInForce(layout, kernelCgroupFiles, () => naming)(container), undefined);
});
