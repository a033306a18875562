import { type Check, failed, type Judgement, passed, warned } from "../check.ts";
import { type Facts, known } from "../facts.ts";
import type { KernelLine } from "../gather/kernel-log.ts";
import { stretch } from "./amounts.ts";

interface Trouble {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  /**
   * From the beginning of the line on, with more fixed letters in a row than the 15 of a process name: pods choose those,
   * and the kernel begins lines with them (`NAME[12]: segfault at`, `NAME invoked oom-killer`).
   */
  readonly pattern: RegExp;
  readonly state: "fail" | "warn";
  readonly fix: string;
}

const troubles: readonly Trouble[] = [
  {
    id: "kernel-log.hung-tasks",
    title: "No process hung in the kernel in the last day",
    why: "it waits for a disk or a file server that does not answer, and can't be killed",
    pattern: /^INFO: task .{1,64} blocked for more than \d+ seconds/,
    state: "fail",
    fix: "find what it waits for (cat /proc/PID/stack); mostly a disk or a file server: see dmesg",
  },
  {
    id: "kernel-log.disk-errors",
    title: "No disk reported errors in the last day",
    why: "a disk that fails takes the pods' data with it",
    pattern: new RegExp(
      [
        /^EXT[234]-fs error \(device \S+\): /,
        /^XFS \([\w.-]{1,32}\): (?:metadata I\/O error|log I\/O error|Metadata corruption|Corruption of in-memory|Filesystem has been shut down)/,
        /^BTRFS (?:error|critical) \(device \S+\): /,
        /^(?:blk_update_request: |print_req_error: |end_request: )?(?:I\/O error|critical \w+ error), dev \S+, sector \d+/,
        /^Buffer I\/O error on dev(?:ice)? /,
        /^nvme\w+: I\/O Cmd\(0x[0-9a-f]+\) @ LBA \d+, .{1,40} I\/O Error /,
      ]
        .map(({ source }) => source)
        .join("|"),
    ),
    state: "fail",
    fix: "smartctl -a DEVICE, save the data, replace the disk",
  },
  {
    id: "kernel-log.read-only",
    title: "No file system went read-only in the last day",
    why: "the kernel does so when it finds a file system broken; pods then can't write",
    pattern: /^(?:EXT[234]-fs|XFS|BTRFS|F2FS-fs)[^[\]]{0,120}(?:[Rr]emounting filesystem read-only|forced readonly)/,
    state: "fail",
    fix: "check the file system (fsck) while it is not mounted",
  },
  {
    id: "kernel-log.netdevice",
    title: "No network device refused to go in the last day",
    why: "the network of a gone pod stays, and later ones may not start",
    pattern: /^unregister_netdevice: waiting for \S+ to become free/,
    state: "warn",
    fix: "update the kernel; a reboot frees them",
  },
  {
    id: "kernel-log.memory-errors",
    title: "No memory error in the last day",
    why: "memory that fails spoils data silently",
    pattern:
      /^(?:(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: |EDAC [\w ]{1,40}: (?:\d+ )?(?:CE|UE) (?:memory \w+ error|page 0x)|Memory failure: 0x[0-9a-f]+: )/,
    state: "fail",
    fix: "drain the node and test its memory",
  },
  {
    id: "kernel-log.lockups",
    title: "No CPU was stuck in the last day",
    why: "a CPU that is stuck in the kernel runs nothing else, or the host of a virtual machine is overcommitted",
    pattern:
      /^(?:(?:(?:NMI )?watchdog: )?BUG: soft lockup - CPU#|(?:NMI )?watchdog: Watchdog detected hard LOCKUP |(?:rcu: )?INFO: \S+ (?:self-)?detected stalls? on )/,
    state: "warn",
    fix: "update the kernel; in a virtual machine see that its host has CPUs to spare",
  },
  {
    id: "kernel-log.conntrack",
    title: "The table of connections was never full in the last day",
    why: "packets of new connections were dropped",
    pattern: /^nf_conntrack: (?:nf_conntrack: )?table full, dropping packet/,
    state: "fail",
    fix: "sysctl -w net.netfilter.nf_conntrack_max=1048576",
  },
];

export const kernelLogChecks: readonly Check[] = [
  {
    id: "kernel-log.oom",
    title: "No process was killed because memory ran out in the last day",
    why: "the kernel chose a process and ended it: a limit is too low, or the machine is too full",
    look: oomKills,
  },
  ...troubles.map(
    ({ id, title, why, pattern, state, fix }): Check => ({
      id,
      title,
      why,
      look: (facts) => {
        const found = known(facts.kernelLog).records.filter(({ text }) => pattern.test(text));
        const last = found.at(-1);
        if (last === undefined) return passed("the kernel's log has none");
        return (state === "fail" ? failed : warned)(
          `${times(found.length)}, last ${ago(last)}: ${clean(last.text)}`,
          fix,
        );
      },
    }),
  ),
];

/** Which pod it was stands in the name of the cgroup. */
function oomKills(facts: Facts): Judgement {
  const { records } = known(facts.kernelLog);
  const kills = records.filter(({ text }) => /Killed process \d+/.test(text));
  const last = kills.at(-1);
  if (last === undefined) return passed("the kernel's log has none");
  const pods = ("value" in facts.pods ? facts.pods.value?.pods : undefined) ?? [];
  const names = new Set<string>();
  for (const { text } of records) {
    const uid = /^oom-kill:.*task_memcg=\S*pod([0-9a-f_-]{32,36})/.exec(text)?.[1]?.replaceAll("_", "-");
    const pod = uid === undefined ? undefined : pods.find(({ metadata }) => metadata?.uid === uid);
    if (pod !== undefined) names.add(`${pod.metadata?.namespace}/${pod.metadata?.name}`);
  }
  const ofWhom = names.size === 0 ? "" : `, of ${[...names].slice(0, 5).join(", ")}`;
  const fix =
    "raise the memory limit of that pod, or find what it keeps; outside of pods: systemReserved and evictionHard keep memory free";
  return warned(`${times(kills.length)}${ofWhom}, last ${ago(last)}: ${clean(last.text)}`, fix);
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

function ago({ agoMs }: KernelLine): string {
  return `${stretch(Math.max(0, agoMs) / 1000)} ago`;
}

/** Names of processes come from pods. */
function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, " ").slice(0, 200);
}
