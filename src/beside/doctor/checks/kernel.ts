import { kernelDefaults } from "../../../ground/model/index.ts";
import { type Check, failed, type Judgement, notApplicable, passed, sourceOf, unknown, warned } from "../check.ts";
import { type Facts, known, setting } from "../facts.ts";
import { kernelFeatures } from "../gather/kernel.ts";

const purposes = new Map([
  ["namespaces", "containers are made of them"],
  ["overlay", "images are stacked by it"],
  ["veth", "it connects pods to the machine"],
  ["bridge", "most pod networks connect pods by it"],
  ["br_netfilter", "without it rules for services do not see traffic between pods of the node"],
  ["nf_conntrack", "services and masquerading need it"],
  ["xt_comment", "rules of services and of the agent are marked by it"],
  ["xt_mark", "rules of services and of the agent are chosen by it"],
  ["seccomp", "it keeps containers from system calls that they do not need"],
  ["keys", "every container gets a keyring"],
]);

const featureChecks = kernelFeatures.map(
  ({ name, options }): Check => ({
    id: `kernel.${name}`,
    title: `The kernel has ${name}`,
    why: purposes.get(name) ?? "",
    look: (facts) => {
      const state = known(facts.kernel).features[name];
      if (state === undefined || state.has === undefined) return unknown(state?.how ?? "nobody knows");
      if (state.has) return passed(state.how);
      return failed(
        state.how,
        `use a kernel with ${options.map((option) => `CONFIG_${option}`).join(", ")}, or install its modules`,
      );
    },
  }),
);

export const kernelChecks: readonly Check[] = [
  ...featureChecks,
  {
    id: "kernel.inotify",
    title: "Enough inotify watches and instances",
    why: "programs in pods that follow files stop with “too many open files” or “no space left on device”",
    look: (facts) =>
      atLeast(facts, [
        ["fs/inotify/max_user_watches", 8_192],
        ["fs/inotify/max_user_instances", 128],
      ]),
  },
  {
    id: "kernel.pids",
    title: "Enough process ids",
    why: "when they are used up nothing on the machine can start any more",
    look: (facts) => atLeast(facts, [["kernel/pid_max", 32_768]]),
  },
  {
    id: "kernel.keyrings",
    title: "Enough keyrings",
    why: "every container takes one of root's; without a free one containers do not start",
    look: (facts) => atLeast(facts, [["kernel/keys/root_maxkeys", 10_000]]),
  },
  {
    id: "kernel.open-files",
    title: "The agent may open as many files as it is told to",
    why: "the agent raises its own limit to maxOpenFiles, which the kernel caps at fs.nr_open",
    look: (facts) => {
      const max = setting(known(facts.config), "maxOpenFiles");
      const most = known(facts.kernel).settings["fs/nr_open"];
      if (most === undefined) return unknown("/proc/sys/fs/nr_open can't be read");
      const wanted = Number(max.value ?? 0);
      if (most >= wanted) return passed(`maxOpenFiles is ${wanted}, fs.nr_open ${most}`, sourceOf(max.origin));
      return warned(
        `maxOpenFiles is ${wanted}, but fs.nr_open only ${most}`,
        `sysctl -w fs.nr_open=${wanted}`,
        sourceOf(max.origin),
      );
    },
  },
  {
    id: "kernel.defaults",
    title: "The kernel's settings are those that pods are promised",
    why: "the agent sets them at its start; with protectKernelDefaults it refuses to start where they differ",
    look: asTheAgentSets,
  },
  {
    id: "kernel.conntrack",
    title: "The table of connections has room",
    why: "when it is full, new connections of all pods are dropped",
    look: (facts) => {
      const { settings } = known(facts.kernel);
      const [most, used] = [settings["net/netfilter/nf_conntrack_max"], settings["net/netfilter/nf_conntrack_count"]];
      if (most === undefined || used === undefined) return notApplicable("the kernel tracks no connections");
      const seen = `${used} of ${most} connections`;
      const fix = `sysctl -w net.netfilter.nf_conntrack_max=${most * 2}`;
      if (used > 0.9 * most) return failed(seen, fix);
      return used > 0.75 * most ? warned(seen, fix) : passed(seen);
    },
  },
];

function atLeast(facts: Facts, wanted: readonly (readonly [name: string, least: number])[]): Judgement {
  const { settings } = known(facts.kernel);
  const missing = wanted.find(([name]) => settings[name] === undefined);
  if (missing !== undefined) return unknown(`/proc/sys/${missing[0]} can't be read`);
  const shown = wanted.map(([name]) => `${dotted(name)} is ${settings[name]}`).join(", ");
  const low = wanted.filter(([name, least]) => (settings[name] ?? 0) < least);
  if (low.length === 0) return passed(shown);
  return warned(shown, low.map(([name, least]) => `sysctl -w ${dotted(name)}=${least}`).join(" && "));
}

function asTheAgentSets(facts: Facts): Judgement {
  const { settings } = known(facts.kernel);
  const config = known(facts.config);
  const protect = setting(config, "protectKernelDefaults");
  const source = sourceOf(protect.origin);
  // What the agent would set, or with protectKernelDefaults refuses to start without.
  const other = kernelDefaults.filter(([name, value]) => settings[name] !== undefined && settings[name] !== value);
  if (other.length === 0) return passed("all six are as promised", source);
  const shown = other.map(([name, value]) => `${dotted(name)} is ${settings[name]}, not ${value}`).join(", ");
  const fix = other.map(([name, value]) => `sysctl -w ${dotted(name)}=${value}`).join(" && ");
  if (protect.value === true) return failed(`${shown}; protectKernelDefaults is true`, fix, source);
  const agent = "value" in facts.agent ? facts.agent.value : undefined;
  if (agent?.state !== "running") return passed(`${shown}; the agent sets it at its start`, source);
  if (agent.self.leavesHostAlone) {
    return passed(`${shown}; the agent was told to leave the machine's settings as they are`, source);
  }
  return warned(`${shown}, although the agent has set it at its start`, fix, source);
}

function dotted(name: string): string {
  return name.replaceAll("/", ".");
}
