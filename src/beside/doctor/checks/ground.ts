import { type Check, failed, type Judgement, passed, shellWord, sourceOf, warned } from "../check.ts";
import { type Facts, known, setting, settingText } from "../facts.ts";

const oldestKernel = [4, 19] as const;
const needed = ["cpu", "cpuset", "memory", "pids"];
const useful = ["hugetlb"];
/** Nothing of ours existed before: a clock that says so is wrong. */
const earliestNow = Date.UTC(2024, 0, 1);

export const groundChecks: readonly Check[] = [
  {
    id: "ground.root",
    title: "The doctor sees what the agent sees",
    why: "the agent runs as root; others can't read its files, and much stays unknown",
    look: (facts) => {
      const { uid } = known(facts.ground);
      return uid === 0
        ? passed("runs as root")
        : warned(`runs as uid ${uid}`, "run the doctor as root, for instance with sudo");
    },
  },
  {
    id: "ground.kernel",
    title: "The kernel is new enough",
    why: "older ones lack what containers, cgroups and volumes are built on",
    look: (facts) => {
      const { kernel } = known(facts.ground);
      const [major = 0, minor = 0] = kernel.split(".").map((part) => Number.parseInt(part, 10));
      const isNew = major > oldestKernel[0] || (major === oldestKernel[0] && minor >= oldestKernel[1]);
      return isNew
        ? passed(`Linux ${kernel}`)
        : failed(`Linux ${kernel}`, `install a kernel from ${oldestKernel.join(".")} on`);
    },
  },
  {
    id: "ground.cgroups",
    title: "The cgroup controllers are there, and ours to use",
    why: "limits of pods are kept by them",
    look: cgroupsAreOurs,
  },
  {
    id: "ground.swap",
    title: "Swap is as the configuration expects it",
    why: "an agent with failSwapOn does not start on a machine that swaps",
    look: swapIsExpected,
  },
  {
    id: "ground.hostname",
    title: "The node's name is valid and leads to an address",
    why: "the API server refuses other names, and reaches the node by them",
    look: nameIsValid,
  },
  {
    id: "ground.machine-id",
    title: "The machine has an identity of its own",
    why: "nodes that share a machine id are taken for one by storage, networks and licences",
    look: (facts) => {
      const { machineId } = known(facts.ground);
      if (/^[0-9a-f]{32}$/.test(machineId) && !/^0+$/.test(machineId)) return passed(`/etc/machine-id is ${machineId}`);
      const seen =
        machineId === "" ? "/etc/machine-id is empty or not there" : `/etc/machine-id is "${machineId.slice(0, 40)}"`;
      return warned(seen, "systemd-machine-id-setup   (on an image that is copied: empty the file before copying)");
    },
  },
  {
    id: "ground.boot-time",
    title: "The machine's time makes sense",
    why: "certificates, leases and back-offs are reckoned by it",
    look: (facts) => {
      const { now, bootedAt } = known(facts.ground);
      const fix = "set the clock, for instance: systemctl enable --now systemd-timesyncd";
      if (now < earliestNow) return failed(`the clock says ${new Date(now).toISOString()}`, fix);
      if (bootedAt === undefined)
        return { state: "unknown", seen: "/proc/stat does not say when the machine was booted" };
      if (bootedAt > now)
        return failed(`it was booted at ${new Date(bootedAt).toISOString()}, which is yet to come`, fix);
      return passed(`booted at ${new Date(bootedAt).toISOString()}`);
    },
  },
];

function cgroupsAreOurs(facts: Facts): Judgement {
  const { cgroups } = known(facts.ground);
  const { version, controllers, readOnly, withheld } = cgroups;
  const has = (name: string): boolean => controllers.includes(name);
  const missing = needed.filter((name) => !has(name));
  const all = `cgroup v${version} with ${controllers.join(", ")}`;
  if (missing.length > 0) {
    const fix =
      "boot with cgroup_enable=memory where the kernel leaves it off; in a container, delegate the controllers (Delegate=yes)";
    return failed(`cgroup v${version} without ${missing.join(", ")}`, fix);
  }
  if (readOnly.length > 0) {
    return failed(
      `${all}; they are mounted read-only: ${readOnly.join(", ")}`,
      "mount -o remount,rw /sys/fs/cgroup   (in a container: run it privileged)",
    );
  }
  const kept = withheld.filter((name) => needed.includes(name));
  if (kept.length > 0) {
    // Those that have ended meanwhile can't be moved any more.
    const moved =
      "mkdir -p /sys/fs/cgroup/init && { xargs -rn1 < /sys/fs/cgroup/cgroup.procs > /sys/fs/cgroup/init/cgroup.procs; true; }";
    const handed = kept.map((name) => `+${name}`).join(" ");
    return failed(
      `${all}; ${kept.join(", ")} can't be handed on to pods, since processes are in the cgroup at the top`,
      `${moved} && echo ${shellWord(handed)} > /sys/fs/cgroup/cgroup.subtree_control`,
    );
  }
  const nice = [...useful, version === 2 ? "io" : "blkio"].filter((name) => !has(name));
  if (nice.length > 0)
    return warned(
      `${all}; without ${nice.join(", ")}`,
      "use a kernel that has them, or do without their limits and figures",
    );
  return passed(all);
}

function swapIsExpected(facts: Facts): Judgement {
  const { swaps, cgroups } = known(facts.ground);
  const config = known(facts.config);
  const failOn = setting(config, "failSwapOn");
  const source = sourceOf(failOn.origin);
  if (swaps.length === 0) return passed("the machine does not swap", source);
  const shown = `the machine swaps to ${swaps.join(", ")}`;
  if (failOn.value === true) {
    return failed(
      `${shown}, and failSwapOn is true`,
      `swapoff ${swaps.map(shellWord).join(" ")}   (and take it out of /etc/fstab), or set failSwapOn: false`,
      source,
    );
  }
  const behaviour = settingText(config, "memorySwap.swapBehavior");
  if (behaviour === "LimitedSwap" && cgroups.version === 1) {
    return warned(
      `${shown}; swapBehavior is LimitedSwap, which needs cgroup v2`,
      "boot with systemd.unified_cgroup_hierarchy=1",
      source,
    );
  }
  return passed(`${shown}; pods ${behaviour === "LimitedSwap" ? "may use a share of it" : "use none of it"}`, source);
}

function nameIsValid(facts: Facts): Judgement {
  const { hostName, hostAddresses } = known(facts.ground);
  const { nodeName } = known(facts.config).report;
  const isValid =
    nodeName.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(nodeName);
  if (!isValid)
    return failed(
      `"${nodeName}" is no valid name of a Node`,
      "hostnamectl set-hostname NAME, in small letters, digits, - and .",
    );
  if (settingText(known(facts.config), "--kubeconfig") === "") return passed(`the node is ${nodeName}`);
  if ("problem" in hostAddresses) {
    return warned(
      `the node is ${nodeName}; no address was found for ${hostName}: ${hostAddresses.problem}`,
      `add a line to /etc/hosts: ADDRESS ${hostName}`,
    );
  }
  return passed(`the node is ${nodeName}; ${hostName} is ${hostAddresses.join(", ")}`);
}
