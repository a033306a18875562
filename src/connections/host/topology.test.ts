import assert from "node:assert/strict";
import { test } from "node:test";
import { MadeUpFiles } from "../../../test/support/made-up-files.ts";
import { readTopology } from "./topology.ts";

const node = "sys/devices/system/node";
const cpu = "sys/devices/system/cpu";

/** Two NUMA nodes with two cores of two threads, of which CPU 7 is offline; node 2 has memory only. */
const machine = {
  [`${cpu}/online`]: "0-6\n",
  [`${node}/node0/cpulist`]: "0-1,4-5\n",
  [`${node}/node1/cpulist`]: "2-3,6-7\n",
  [`${node}/node2/cpulist`]: "\n",
  [`${node}/online`]: "0-2\n",
  ...Object.fromEntries(
    [0, 1, 2, 3, 4, 5, 6, 7].flatMap((id) => [
      [`${cpu}/cpu${id}/topology/core_id`, `${id % 2}\n`],
      [`${cpu}/cpu${id}/topology/physical_package_id`, `${Math.floor((id % 4) / 2)}\n`],
      [`${cpu}/cpu${id}/cache/index0/level`, "1\n"],
      [`${cpu}/cpu${id}/cache/index1/level`, "3\n"],
      [`${cpu}/cpu${id}/cache/index1/id`, `${id % 4 < 2 ? 0 : 4 + (id % 2)}\n`],
      // Node 0 shares one cache, the cores of node 1 have one each.
      [`${cpu}/cpu${id}/cache/index1/shared_cpu_list`, id % 4 < 2 ? "0-1,4-5\n" : `${id % 4},${(id % 4) + 4}\n`],
    ]),
  ),
  ...Object.fromEntries(
    [0, 1, 2].flatMap((id) => [
      [`${node}/node${id}/meminfo`, `Node ${id} MemTotal:       ${1000 * (id + 1)} kB\nNode ${id} MemFree: 5 kB\n`],
      [`${node}/node${id}/distance`, "10 21 31\n"],
      [`${node}/node${id}/hugepages/hugepages-2048kB/nr_hugepages`, `${id}\n`],
    ]),
  ),
};

test("NUMA nodes, cores, sockets and caches; what is offline is not there", async () => {
  using files = new MadeUpFiles(machine);
  const { nodes } = await readTopology(files.root);
  assert.deepEqual(
    nodes.map(({ id, cpus, memoryBytes }) => [id, cpus.map((one) => one.id).join(","), memoryBytes]),
    [
      [0, "0,1,4,5", 1_024_000],
      [1, "2,3,6", 2_048_000],
      [2, "", 3_072_000],
    ],
  );
  assert.deepEqual(nodes[0]?.cpus[1], { id: 1, core: 1, socket: 0, cache: undefined });
  assert.deepEqual(nodes[1]?.cpus[2], { id: 6, core: 0, socket: 1, cache: 4 });
  assert.deepEqual(nodes[1]?.distances, [10, 21, 31]);
  assert.deepEqual([...(nodes[2]?.hugePages ?? [])], [[2n << 20n, 2 * 2 ** 21]]);
});

test("a kernel without NUMA: every package is a node, the first has the memory", async () => {
  using files = new MadeUpFiles({
    ...Object.fromEntries(Object.entries(machine).filter(([path]) => path.startsWith(cpu))),
    "proc/meminfo": "MemTotal:  4000 kB\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1\n",
  });
  const { nodes } = await readTopology(files.root);
  assert.deepEqual(
    nodes.map(({ id, cpus, memoryBytes, distances }) => [id, cpus.length, memoryBytes, distances]),
    [
      [0, 4, 4_096_000, undefined],
      [1, 3, 0, undefined],
    ],
  );
});

test("firmware that says nothing, or nonsense: each CPU is a core of one socket", async () => {
  using files = new MadeUpFiles({
    [`${node}/node0/cpulist`]: "0-1\n",
    [`${cpu}/cpu0/topology/core_id`]: "-1\n",
    [`${cpu}/cpu0/topology/physical_package_id`]: "-1\n",
  });
  const { nodes } = await readTopology(files.root);
  assert.deepEqual(nodes[0]?.cpus, [
    { id: 0, core: 0, socket: 0, cache: undefined },
    { id: 1, core: 1, socket: 0, cache: undefined },
  ]);
  assert.equal(nodes[0]?.memoryBytes, 0);
});

test("this machine has as many CPUs as are online, each in one place", async () => {
  const ids = (await readTopology()).nodes.flatMap(({ cpus }) => cpus.map(({ id }) => id));
  assert.ok(ids.length > 0);
  assert.equal(new Set(ids).size, ids.length);
});
