import { CpuSet, CpuSetError, formatDuration } from "../../base/index.ts";
import { isHugePages, tryParseQuantity } from "../../model/index.ts";
import { keyPath } from "../fields/field-kinds.ts";
import { label } from "../fields/fields.ts";
import { percentOf, reservableResources } from "../text/reserved.ts";
import { type RuleContext, shown, words } from "./rule-context.ts";

/** Cgroups and what of the node is reserved and enforced. */
export function checkResources(context: RuleContext): void {
  checkCgroups(context);
  checkEnforcement(context);
  checkReserved(context);
  checkReservedCpus(context);
  checkReservedMemory(context);
  checkQosReserved(context);
  checkSwap(context);
  checkUserNamespaces(context);
}

function checkCgroups({ config, invalid, problem, isOn, cgroupVersion }: RuleContext): void {
  if (config.systemCgroups !== "" && config.cgroupRoot === "") {
    const given = `${label("systemCgroups")} ${shown(config.systemCgroups)}`;
    invalid("systemCgroups", `${given} was specified and ${label("cgroupRoot")} was not specified`);
  }
  if (config.systemCgroups === "/") {
    invalid("systemCgroups", `${label("systemCgroups")} "/": system container cannot be root ("/")`);
  }
  if (config.failCgroupV1 && cgroupVersion === 1) {
    const reason =
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is in maintenance mode";
    problem("failCgroupV1", `${reason}; ${label("failCgroupV1")} is true`);
  }
  if (config.singleProcessOOMKill === false && cgroupVersion === 1) {
    const rule = "must not be explicitly set to false when using cgroup v1";
    invalid("singleProcessOOMKill", `singleProcessOOMKill false ${rule}`);
  }
  const period = config.cpuCFSQuotaPeriodMs;
  const found = `${label("cpuCFSQuotaPeriod")} ${formatDuration(period)}`;
  if (!isOn("CustomCPUCFSQuotaPeriod")) {
    if (period !== 100) invalid("cpuCFSQuotaPeriod", `${found} requires feature gate CustomCPUCFSQuotaPeriod`);
  } else if (period < 1 || period > 1000) {
    invalid("cpuCFSQuotaPeriod", `${found} must be between 1ms and 1sec, inclusive`);
  }
}

const enforcements = [
  "pods",
  "system-reserved",
  "system-reserved-compressible",
  "kube-reserved",
  "kube-reserved-compressible",
  "none",
];

function checkEnforcement({ config, invalid }: RuleContext): void {
  const path = "enforceNodeAllocatable";
  const given = config.enforceNodeAllocatable;
  const name = label(path);
  for (const kind of ["system-reserved", "kube-reserved"]) {
    if (given.includes(kind) && given.includes(`${kind}-compressible`)) {
      invalid(path, `both "${kind}" and "${kind}-compressible" cannot be specified together in ${name}`);
    }
  }
  for (const word of new Set(given)) {
    if (given.indexOf(word) !== given.lastIndexOf(word)) invalid(path, `duplicated enforcements "${word}" in ${name}`);
    if (!enforcements.includes(word)) {
      invalid(path, `option ${shown(word)} specified for ${name}. Valid options are ${words(enforcements)}`);
      continue;
    }
    if (word === "none") {
      if (given.length > 1)
        invalid(path, `${name} ${shown(given)} may not contain additional enforcements when "none" is specified`);
      continue;
    }
    const cgroup = word.startsWith("system")
      ? "systemReservedCgroup"
      : word.startsWith("kube")
        ? "kubeReservedCgroup"
        : undefined;
    if (cgroup !== undefined && config[cgroup] === "") {
      invalid(cgroup, `${label(cgroup)} must be specified when "${word}" included in ${name}`);
    }
    if (!config.cgroupsPerQOS) {
      invalid(
        "cgroupsPerQOS",
        `${label("cgroupsPerQOS")} false must be set to true when "${word}" contained in ${name}`,
      );
    }
  }
}

function checkReserved({ config, invalid }: RuleContext): void {
  for (const path of ["kubeReserved", "systemReserved"] as const) {
    for (const [resource, text] of Object.entries(config[path])) {
      const wrong = (reason: string): void =>
        invalid(keyPath(path, resource), `${label(path)} value failed to parse: ${reason}`);
      const quantity = tryParseQuantity(text);
      if (!reservableResources.includes(resource)) {
        wrong(`cannot reserve ${shown(resource)} resource, only ${words(reservableResources)}`);
      } else if (quantity === undefined)
        wrong(`failed to parse quantity ${shown(text)} for ${shown(resource)} resource`);
      else if (quantity < 0n) wrong(`resource quantity for ${shown(resource)} cannot be negative: ${text}`);
    }
  }
}

function checkReservedCpus({ config, invalid, onlineCpus }: RuleContext): void {
  const text = config.reservedSystemCPUs;
  if (text === "") return;
  const path = "reservedSystemCPUs";
  if (config.systemReservedCgroup !== "" || config.kubeReservedCgroup !== "") {
    const others = `${label("systemReservedCgroup")} or ${label("kubeReservedCgroup")}`;
    invalid(path, `can't use ${label(path)} ${shown(text)} with ${others}`);
  }
  try {
    const online = onlineCpus === undefined ? undefined : CpuSet.parse(onlineCpus);
    const offline = [...CpuSet.parse(text)].filter((cpu) => online !== undefined && !online.has(cpu));
    if (offline.length > 0) {
      invalid(
        path,
        `${label(path)} ${shown(text)} must be a subset of the online CPUs ${shown(onlineCpus)}; not online: ${offline.join(",")}`,
      );
    }
  } catch (error) {
    if (!(error instanceof CpuSetError)) throw error;
    invalid(path, `unable to parse ${label(path)} ${shown(text)}, error: ${error.message}`);
  }
}

function checkReservedMemory({ config, invalid }: RuleContext): void {
  const seen = new Set<string>();
  for (const [index, { numaNode, limits }] of config.reservedMemory.entries()) {
    const path = `reservedMemory[${index}]`;
    const name = `${path} (--reserved-memory)`;
    for (const [type, quantity] of Object.entries(limits)) {
      if (type !== "memory" && !isHugePages(type)) {
        const rule = `is not supported, only "memory" and "hugepages-<size>" are accepted`;
        invalid(path, `${name}: the limit type ${shown(type)} for NUMA node ${numaNode} ${rule}`);
      }
      const amount = tryParseQuantity(quantity);
      if (amount !== undefined && amount <= 0n) {
        // The kubelet takes less than nothing, and gives pods memory that the node does not have.
        const what = amount === 0n ? "zero" : "negative";
        invalid(
          path,
          `${name}: reserved memory may not be ${what} for NUMA node ${numaNode} and resource ${shown(type)}`,
        );
      }
      const identity = `${numaNode} ${type}`;
      if (seen.has(identity)) {
        const rule = `the reserved memory has a duplicate value for NUMA node ${numaNode} and resource ${shown(type)}`;
        invalid(path, `${name}: ${rule}`);
      }
      seen.add(identity);
    }
  }
}

function checkQosReserved({ config, invalid }: RuleContext): void {
  for (const [resource, text] of Object.entries(config.qosReserved)) {
    const wrong = (reason: string): void =>
      invalid(keyPath("qosReserved", resource), `${label("qosReserved")} value failed to parse: ${reason}`);
    const percent = percentOf(text);
    if (resource !== "memory") wrong(`cannot reserve ${shown(resource)} resource, only "memory"`);
    else if (percent === undefined)
      wrong(`percentage expected, got ${shown(text)}; wanted a whole number such as "50%"`);
    else if (percent < 0 || percent > 100) wrong(`percentage must be between 0 and 100, got ${shown(text)}`);
  }
}

function checkSwap({ config, invalid, cgroupVersion }: RuleContext): void {
  const path = "memorySwap.swapBehavior";
  const { swapBehavior } = config.memorySwap;
  if (!["", "NoSwap", "LimitedSwap"].includes(swapBehavior)) {
    invalid(path, `${path} ${shown(swapBehavior)} must be one of: "", "LimitedSwap" or "NoSwap"`);
  }
  if (swapBehavior === "LimitedSwap" && cgroupVersion === 1) {
    invalid(path, `${path} "LimitedSwap" must not be used with cgroup v1; it needs a host with cgroup v2`);
  }
}

function checkUserNamespaces({ config, invalid }: RuleContext): void {
  const path = "userNamespaces.idsPerPod";
  const count = config.userNamespaces?.idsPerPod;
  if (count === undefined) return;
  if (count < 65536) invalid(path, `${path} ${count} must not be less than 65536`);
  else if (count % 65536 !== 0) invalid(path, `${path} ${count} must be a multiple of 65536`);
  else if (count > 2 ** 32 - 1) invalid(path, `${path} ${count} must not be more than 4294967295`);
}
