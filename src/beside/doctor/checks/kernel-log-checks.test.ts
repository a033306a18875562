// What the checks make of what the kernel has said.
import { log, pods, type Row, testChecks } from "../../../../test/support/doctor-checks.ts";

testChecks([
  [
    "an OOM kill",
    "kernel-log.oom",
    "warn",
    /^once, of default\/web, last 60 s ago: Memory cgroup out of memory: Killed process 7 \(x\)/,
    (facts) => ({
      ...pods({ metadata: { namespace: "default", name: "web", uid: "01234567-89ab-cdef-0123-456789abcdef" } })(facts),
      ...log(
        "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/kubepods/pod01234567_89ab_cdef_0123_456789abcdef/x",
        "Memory cgroup out of memory: Killed process 7 (x)",
      )(facts),
    }),
  ],
  [
    "a task that hangs",
    "kernel-log.hung-tasks",
    "fail",
    /INFO: task/,
    log("INFO: task nfsd:12 blocked for more than 120 seconds."),
  ],
  [
    "a disk with errors",
    "kernel-log.disk-errors",
    "fail",
    /2 times/,
    log("EXT4-fs error (device sda1): x", "blk_update_request: I/O error, dev sda, sector 8 op 0x0:(READ)"),
  ],
  [
    "a file system that went read-only",
    "kernel-log.read-only",
    "fail",
    /once/,
    log("EXT4-fs (sda1): Remounting filesystem read-only"),
  ],
  [
    "a device that stays",
    "kernel-log.netdevice",
    "warn",
    /eth0/,
    log("unregister_netdevice: waiting for eth0 to become free. Usage count = 1"),
  ],
  ["broken memory", "kernel-log.memory-errors", "fail", /Hardware Error/, log("mce: [Hardware Error]: CPU 1")],
  [
    "a stuck CPU",
    "kernel-log.lockups",
    "warn",
    /soft lockup/,
    log("watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"),
  ],
  [
    "connections were dropped",
    "kernel-log.conntrack",
    "fail",
    /table full/,
    log("nf_conntrack: nf_conntrack: table full, dropping packet"),
  ],
  ...(["disk-errors", "read-only", "hung-tasks", "netdevice", "memory-errors", "lockups", "conntrack"] as const).map(
    (trouble): Row => [
      "pods that call their processes after it",
      `kernel-log.${trouble}`,
      "pass",
      /none/,
      log(
        ...[
          "I/O error",
          "I/O error, dev ",
          "EXT4-fs error (",
          "XFS (a): error",
          "soft lockup",
          "Hardware Error",
        ].flatMap((name) => [
          `${name}[12]: segfault at 0 ip 0 sp 0 error 4 in device a): Remounting filesystem read-only[400000+1000]`,
          `${name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0`,
          `Memory cgroup out of memory: Killed process 7 (${name}) total-vm:1kB`,
        ]),
      ),
    ],
  ),
  ["the kernel says other things", "kernel-log.oom", "pass", /none/, log("eth0: link up", "oom_reaper: x")],
]);
