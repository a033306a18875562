// Gives a pod CPUs, memory and devices, then another, and so on, and says each time when that is on disk. To be killed.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { CpuSet } from "../../src/ground/base/index.ts";
import type { PodUid } from "../../src/ground/model/index.ts";
import { encodeCpuFile } from "../../src/pod/resources/cpu/cpu-file.ts";
import { encodeDeviceFile } from "../../src/pod/resources/devices/device-file.ts";
import { nobody, withGrant } from "../../src/pod/resources/devices/device-state.ts";
import { diskFiles } from "../../src/pod/resources/disk-files.ts";
import { FollowingFile } from "../../src/pod/resources/following-file.ts";
import { encodeMemoryFile } from "../../src/pod/resources/memory/memory-file.ts";

const [directory = ""] = process.argv.slice(2);
/** So many that a file takes more than one write of the kernel's. */
const containers = Array.from({ length: 400 }, (_, index) => `container-${index}`);
let count = 0;
const uid = (): PodUid => `pod-${count}` as PodUid;

const contents: Readonly<Record<string, () => string>> = {
  cpu_manager_state: () =>
    encodeCpuFile("static", {
      shared: CpuSet.parse("0"),
      exclusive: new Map([[uid(), new Map(containers.map((name) => [name, CpuSet.parse("1-9")]))]]),
    }),
  memory_manager_state: () =>
    encodeMemoryFile("Static", {
      machine: new Map(),
      blocks: new Map([
        [uid(), new Map(containers.map((name) => [name, [{ nodes: [0], type: "memory", bytes: 4096 }]]))],
      ]),
    }),
  kubelet_internal_checkpoint: () =>
    encodeDeviceFile(
      containers.reduce((state, container) => {
        const grant = { ids: ["a"], byNode: new Map([[-1, ["a"]]]), response: new Uint8Array([0x0a, 0]) };
        return withGrant(state, { uid: uid(), container, resource: "vendor.com/gpu" }, grant);
      }, nobody),
      new Map([["vendor.com/gpu", ["a"]]]),
    ),
};
const files = Object.entries(contents).map(
  ([name, content]) => [name, new FollowingFile(join(directory, name), diskFiles, content)] as const,
);
for (;;) {
  count++;
  for (const [name, file] of files) {
    await file.save();
    writeSync(1, `${name} ${count}\n`);
  }
}
