import assert from "node:assert/strict";
import { test } from "node:test";
import { containerIdsIn, OomReader } from "./kernel-oom.ts";

const begin = "tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0";
const id = "0123456789abcdef".repeat(4);
const of = (constraint: string, groups: string, task = "tail"): string =>
  `oom-kill:constraint=${constraint},nodemask=(null),cpuset=/,mems_allowed=0,${groups},task=${task},pid=8659,uid=0`;

for (const [name, lines, expected] of [
  [
    "a cgroup's limit",
    [begin, "Mem-Info:", of("CONSTRAINT_MEMCG", `oom_memcg=/kubepods/podx,task_memcg=/kubepods/podx/${id}`)],
    { of: "cgroup", cgroup: `/kubepods/podx/${id}`, process: "tail", pid: 8659 },
  ],
  [
    "the whole machine",
    [begin, of("CONSTRAINT_NONE", "global_oom,task_memcg=/system.slice/x.service")],
    { of: "machine", cgroup: "/system.slice/x.service", process: "tail", pid: 8659 },
  ],
  [
    "a machine whose memory nodes are no single range",
    [
      begin,
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=0,2,cpuset=${id},mems_allowed=0,2-3,oom_memcg=/podx,task_memcg=/podx/${id},task=tail,pid=8659,uid=0`,
      "Memory cgroup out of memory: Killed process 8659 (tail) total-vm:1kB",
    ],
    { of: "cgroup", cgroup: `/podx/${id}`, process: "tail", pid: 8659 },
  ],
  [
    "the whole of such a machine",
    [
      begin,
      "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,2,global_oom,task_memcg=/a,task=tail,pid=8659,uid=0",
      "Out of memory: Killed process 8659 (tail) total-vm:1kB",
    ],
    { of: "machine", cgroup: "/a", process: "tail", pid: 8659 },
  ],
  [
    "the top of all cgroups",
    [begin, of("CONSTRAINT_MEMCG", "oom_memcg=/,task_memcg=/a")],
    { of: "machine", cgroup: "/a", process: "tail", pid: 8659 },
  ],
  [
    "a process with a name that looks like the rest of the line",
    [begin, of("CONSTRAINT_MEMCG", "oom_memcg=/b,task_memcg=/b", "x,pid=1,uid=0")],
    { of: "cgroup", cgroup: "/b", process: "x,pid=1,uid=0", pid: 8659 },
  ],
  [
    "a process with a name that looks like a name",
    [begin, of("CONSTRAINT_MEMCG", `oom_memcg=/b,task_memcg=/b/${id}`, ",task=x,pid=1")],
    { of: "cgroup", cgroup: `/b/${id}`, process: ",task=x,pid=1", pid: 8659 },
  ],
  [
    "an older kernel, a cgroup's limit",
    [begin, "Task in /docker/a killed as a result of limit of /docker", "Killed process 19667 (evil (x)) total-vm:1kB"],
    { of: "cgroup", cgroup: "/docker/a", process: "evil (x)", pid: 19_667 },
  ],
  [
    "an older kernel, the whole machine",
    [begin, "Out of memory: Kill process 1234 (java) score 5 or sacrifice child"],
    { of: "machine", cgroup: "/", process: "java", pid: 1234 },
  ],
  ["a line without its begin", [of("CONSTRAINT_MEMCG", "oom_memcg=/b,task_memcg=/b")], undefined],
  [
    "no second kill for what follows",
    [
      begin,
      of("CONSTRAINT_NONE", "global_oom,task_memcg=/a"),
      "Out of memory: Killed process 8659 (tail) total-vm:1kB",
    ],
    { of: "machine", cgroup: "/a", process: "tail", pid: 8659 },
  ],
] as const) {
  test(`the kernel's words: ${name}`, () => {
    const reader = new OomReader();
    const kills = lines.flatMap((line) => reader.take(line) ?? []);
    assert.deepEqual(kills, expected === undefined ? [] : [expected]);
  });
}

for (const [cgroup, expected] of [
  [`/kubepods/burstable/pod1/${id}`, [id]],
  [`/kubepods.slice/kubepods-pod1.slice/cri-containerd-${id}.scope`, [id]],
  [`/kubepods.slice/crio-${id}.scope/container`, [id]],
  [`/kubepods/pod1/${id}/docker/${"f".repeat(64)}`, [id, "f".repeat(64)]],
  ["/system.slice/ssh.service", []],
  [`/a/x${id}`, []],
] as const) {
  test(`containers in ${cgroup.replaceAll(id, "ID")}`, () => assert.deepEqual(containerIdsIn(cgroup), expected));
}
