import type { resourceFields } from "../../../src/ground/config/fields/fields-resources.ts";
import { count, type FieldSample, minutes, negative, off, on, path, word } from "./sample.ts";

export const resourcesSamples: Record<keyof typeof resourceFields, FieldSample> = {
  oomScoreAdj: count(
    ["-1001", "oomScoreAdj (--oom-score-adj) -1001 must be between -1000 and 1000, inclusive"],
    ["1001", "must be"],
  ),
  maxOpenFiles: count(negative("maxOpenFiles (--max-open-files)")),
  maxPods: count(negative("maxPods (--max-pods)")),
  podsPerCore: count(negative("podsPerCore (--pods-per-core)")),
  podPidsLimit: { valid: ["-5", -1] },
  kubeletCgroups: word,
  systemCgroups: {
    ...word,
    besides: "cgroupRoot: /",
    invalid: [
      [
        "word",
        'systemCgroups (--system-cgroups) "word" was specified and cgroupRoot (--cgroup-root) was not specified',
        'cgroupRoot: ""',
      ],
      ["/", 'system container cannot be root ("/")'],
    ],
  },
  cgroupRoot: path,
  cgroupsPerQOS: { ...off, besides: "enforceNodeAllocatable: [none]" },
  cgroupDriver: word,
  failCgroupV1: on,
  singleProcessOOMKill: off,
  cpuCFSQuota: off,
  cpuCFSQuotaPeriod: {
    valid: ["1s", 1_000],
    besides: "featureGates: {CustomCPUCFSQuotaPeriod: true}",
    invalid: [
      [
        "1s",
        "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 1s requires feature gate CustomCPUCFSQuotaPeriod",
        "featureGates: {CustomCPUCFSQuotaPeriod: false}",
      ],
      ["2s", "2s must be between 1ms and 1sec, inclusive"],
      ["999us", "999µs must be between 1ms and 1sec, inclusive"],
    ],
  },
  cpuManagerPolicy: {
    valid: ["static", "static"],
    besides: "kubeReserved: {cpu: 500m}",
    invalid: [
      ["dynamic", 'cpuManagerPolicy (--cpu-manager-policy) "dynamic" must be one of: "none", "static"'],
      [
        "static",
        "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
        "kubeReserved: {cpu: '0'}",
      ],
    ],
  },
  cpuManagerPolicyOptions: {
    valid: ['{full-pcpus-only: "true"}', { "full-pcpus-only": "true" }],
    besides: 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"',
    invalid: [
      [
        '{full-pcpu-only: "true"}',
        'unknown CPU Manager Policy option: "full-pcpu-only" (did you mean full-pcpus-only?)',
      ],
      ['{align-by-socket: "true"}', "it needs feature gate CPUManagerPolicyAlphaOptions"],
      [
        '{distribute-cpus-across-numa: "true"}',
        "it needs feature gate CPUManagerPolicyBetaOptions",
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\nfeatureGates: {CPUManagerPolicyBetaOptions: false}',
      ],
      ['{full-pcpus-only: "maybe"}', 'bad value "maybe" for option "full-pcpus-only"'],
      ['{full-pcpus-only: "true", distribute-cpus-across-cores: "true"}', "can not be used at the same time"],
      [
        '{full-pcpus-only: "true"}',
        'must be empty when cpuManagerPolicy (--cpu-manager-policy) is "none"',
        "cpuManagerPolicy: none",
      ],
      [
        '{align-by-socket: "true"}',
        "option align-by-socket is incompatible with topologyManagerPolicy",
        'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ntopologyManagerPolicy: single-numa-node',
      ],
    ],
  },
  cpuManagerReconcilePeriod: minutes,
  memoryManagerPolicy: {
    valid: ["Static", "Static"],
    invalid: [["static", 'memoryManagerPolicy (--memory-manager-policy) "static" must be one of']],
  },
  reservedMemory: {
    valid: ["[{numaNode: 1, limits: {memory: 1Gi}}]", [{ numaNode: 1, limits: { memory: "1Gi" } }]],
    invalid: [
      ["[{numaNode: 1, limits: {cpu: 1}}]", 'the limit type "cpu" for NUMA node 1 is not supported'],
      ["[{numaNode: 1, limits: {memory: 0}}]", 'reserved memory may not be zero for NUMA node 1 and resource "memory"'],
      ["[{numaNode: 1, limits: {memory: 1}}, {numaNode: 1, limits: {memory: 2}}]", "duplicate value for NUMA node 1"],
    ],
  },
  topologyManagerPolicy: {
    valid: ["restricted", "restricted"],
    invalid: [["x", 'topologyManagerPolicy (--topology-manager-policy) "x" must be one of']],
  },
  topologyManagerScope: {
    valid: ["pod", "pod"],
    invalid: [["node", 'topologyManagerScope (--topology-manager-scope) "node" must be one of']],
  },
  topologyManagerPolicyOptions: {
    valid: ['{max-allowable-numa-nodes: "9"}', { "max-allowable-numa-nodes": "9" }],
    invalid: [
      ['{nearest: "true"}', 'unknown Topology Manager Policy option: "nearest"'],
      ['{max-allowable-numa-nodes: "7"}', "it should not be less than 8"],
      ['{max-allowable-numa-nodes: "many"}', 'bad value "many" for option "max-allowable-numa-nodes"'],
      ['{prefer-closest-numa-nodes: "maybe"}', 'bad value "maybe"'],
      [
        '{max-allowable-numa-nodes: "9"}',
        "it needs feature gate TopologyManagerPolicyBetaOptions",
        "featureGates: {TopologyManagerPolicyBetaOptions: false}",
      ],
      [
        '{prefer-closest-numa-nodes: "true"}',
        "requires feature gate TopologyManagerPolicyOptions",
        "featureGates: {TopologyManagerPolicyOptions: false}",
      ],
    ],
  },
  qosReserved: {
    valid: ["{memory: 50%}", { memory: "50%" }],
    invalid: [
      ["{cpu: 50%}", 'cannot reserve "cpu" resource'],
      ['{memory: "50"}', "percentage expected"],
      ["{memory: 101%}", "percentage must be between 0 and 100"],
      ["{memory: 1.5%}", "percentage expected"],
    ],
  },
  systemReserved: {
    valid: ["{pid: '100'}", { pid: "100" }],
    invalid: [
      ["{gpu: '1'}", 'systemReserved (--system-reserved) value failed to parse: cannot reserve "gpu" resource'],
    ],
  },
  kubeReserved: {
    valid: ["{cpu: 100m, memory: 1Gi}", { cpu: "100m", memory: "1Gi" }],
    invalid: [
      ["{cpu: lots}", 'failed to parse quantity "lots" for "cpu" resource'],
      ["{cpu: '-1'}", 'resource quantity for "cpu" cannot be negative: -1'],
    ],
  },
  reservedSystemCPUs: {
    valid: ["0-1", "0-1"],
    invalid: [
      ["3-1", 'unable to parse reservedSystemCPUs (--reserved-cpus) "3-1", error: invalid range "3-1" (3 > 1)'],
      ["a", '"a" is neither a CPU number nor a range'],
      ["0-9", 'must be a subset of the online CPUs "0-1"'],
      ['"0"', "can't use reservedSystemCPUs", "kubeReservedCgroup: /kube"],
    ],
  },
  systemReservedCgroup: path,
  kubeReservedCgroup: path,
  enforceNodeAllocatable: {
    valid: ["[pods, kube-reserved]", ["pods", "kube-reserved"]],
    besides: "kubeReservedCgroup: /kube",
    invalid: [
      [
        "[everything]",
        'option "everything" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are',
      ],
      ["[none, pods]", 'may not contain additional enforcements when "none" is specified'],
      ["[pods, pods]", 'duplicated enforcements "pods"'],
      [
        "[kube-reserved, kube-reserved-compressible]",
        'both "kube-reserved" and "kube-reserved-compressible" cannot be specified together',
      ],
      ["[system-reserved]", 'systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved"'],
      ["[pods]", 'cgroupsPerQOS (--cgroups-per-qos) false must be set to true when "pods"', "cgroupsPerQOS: false"],
    ],
  },
  protectKernelDefaults: on,
  failSwapOn: off,
  "memorySwap.swapBehavior": {
    valid: ["LimitedSwap", "LimitedSwap"],
    invalid: [["Unlimited", 'memorySwap.swapBehavior "Unlimited" must be one of: "", "LimitedSwap" or "NoSwap"']],
  },
  memoryThrottlingFactor: {
    valid: ["0.5", 0.5],
    invalid: [
      ["0", "memoryThrottlingFactor 0 must be greater than 0 and less than or equal to 1.0"],
      ["1.1", "must be greater than 0"],
    ],
  },
  allowedUnsafeSysctls: {
    valid: ['["net.*", kernel.msgmax]', ["net.*", "kernel.msgmax"]],
    invalid: [
      ["[vm.swappiness]", 'the sysctls "vm.swappiness" are not known to be namespaced'],
      ['["net..x"]', "must have at most 253 characters and match regex"],
    ],
  },
  makeIPTablesUtilChains: off,
  iptablesMasqueradeBit: count(["32", "iptablesMasqueradeBit 32 must be between 0 and 31, inclusive"]),
  iptablesDropBit: count(["-1", "iptablesDropBit -1 must be between 0 and 31, inclusive"]),
  runOnce: {
    valid: ["false", false],
    invalid: [["true", "runOnce (--runonce) true, Runonce mode has been deprecated and should not be set"]],
  },
};
