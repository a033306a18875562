import type { CommandDescription } from "./description.ts";
import { outputOptions, rootDirOption } from "./shared-options.ts";

const dryRunOption = {
  "dry-run": { type: "flag", isRequired: true, means: "for it only says what would happen" },
} as const;

export const dashboardDescription = {
  name: "dashboard",
  group: "node",
  summary: "print or open the address of the agent's dashboard",
  description:
    "Prints the address of the pages that show this node live, with a token in it that is good for one login.",
  options: {
    open: { type: "flag", means: "open it in a browser instead (xdg-open)" },
    ...outputOptions,
    ...rootDirOption,
  },
  examples: [{ line: "dashboard --open", means: "look at this node" }],
} as const satisfies CommandDescription;

export const resourcesDescription = {
  name: "resources",
  group: "node",
  summary: "say who has which CPUs, memory and devices of this machine, and why",
  description:
    "Says which CPUs and which memory every NUMA node of this machine has and which devices its plugins offer, who has them alone, and why; and which resource claims pods use.",
  options: { ...outputOptions, ...rootDirOption },
  examples: [{ line: "resources -o json", means: "the same for a program" }],
} as const satisfies CommandDescription;

export const doctorDescription = {
  name: "doctor",
  group: "node",
  summary: "examine this node, and say what is wrong and what mends it",
  description:
    "Examines this node: the rows of the CIS benchmark for Kubernetes (edition 1.12, 4.1 to 4.3), the machine, the runtime, the API server, certificates, pods, the kernel's log. Says what is wrong, where it comes from and what mends it, and changes nothing on the machine. Without flags of the agent, such as --config=FILE, the agent that runs is examined; with them, the configuration that it would start with.",
  options: {
    only: {
      type: "texts",
      value: "WORDS",
      means:
        "only these, separated by commas: cis, preflight, kernel, runtime, api, pods, a group, or a check such as 4.2.1",
    },
    skip: { type: "texts", value: "WORDS", means: "all but these" },
    strict: { type: "flag", means: "warnings count as failures" },
    "node-conditions": {
      type: "flag",
      means: "write KernelDeadlock and ReadonlyFilesystem to the Node, as node-problem-detector does",
    },
    output: {
      type: "choice",
      short: "o",
      values: ["text", "json", "junit", "sarif", "metrics"],
      default: "text",
      means: "for people, or for programs: all findings, or how many of each kind for Prometheus",
    },
    json: { type: "flag", means: "the same as --output json" },
    junit: { type: "flag", means: "the same as --output junit" },
    sarif: { type: "flag", means: "the same as --output sarif" },
    ...rootDirOption,
  },
  takesAgentFlags: true,
  examples: [
    { line: "doctor", means: "the agent that runs here" },
    { line: "doctor --only cis --config /var/lib/kubelet/config.yaml", means: "before an agent starts with it" },
    { line: "doctor --strict --junit > doctor.xml", means: "in a pipeline" },
  ],
  exits: [
    { code: "0", means: "nothing failed" },
    { code: "1", means: "something failed; with --strict, or warns" },
    { code: "3", means: "nothing failed, but something could not be found out" },
  ],
} as const satisfies CommandDescription;

export const shutdownDescription = {
  name: "shutdown",
  group: "node",
  summary: "say what would happen to the pods if this machine were turned off",
  description:
    'Says what would happen to the pods if this machine were turned off now: in which order they end, and how long each has. It turns nothing off; that is for "systemctl poweroff" and "systemctl reboot".',
  options: { ...dryRunOption, ...outputOptions, ...rootDirOption },
  examples: [{ line: "shutdown --dry-run", means: "who would get less time than asked for" }],
} as const satisfies CommandDescription;

export const evictDescription = {
  name: "evict",
  group: "node",
  summary: "say which pods would be evicted, in which order and why",
  description:
    "Says which pods the node would evict, in which order and why. The node decides by itself when to do so.",
  options: {
    ...dryRunOption,
    signal: {
      type: "texts",
      value: "SIGNAL=AMOUNT",
      means: "what if so much were available, such as memory.available=400Mi",
    },
    ...outputOptions,
    ...rootDirOption,
  },
  examples: [{ line: "evict --dry-run --signal memory.available=400Mi", means: "what if memory ran short" }],
} as const satisfies CommandDescription;

export const gcDescription = {
  name: "gc",
  group: "node",
  summary: "say which images, dead containers and logs would be removed, and who keeps the others",
  description:
    "Says what the node would remove that nobody uses, and who keeps the other images. Without a part: all parts.",
  options: {
    ...dryRunOption,
    images: { type: "flag", means: "images" },
    containers: { type: "flag", means: "dead containers and sandboxes" },
    logs: { type: "flag", means: "logs of pods that are gone" },
    pods: { type: "flag", means: "directories of pods that are gone" },
    all: { type: "flag", means: "as under disk pressure: everything that nobody uses" },
    ...outputOptions,
    ...rootDirOption,
  },
  examples: [{ line: "gc --dry-run --images", means: "which images would go, and who keeps the rest" }],
} as const satisfies CommandDescription;

export const drainDescription = {
  name: "drain",
  group: "node",
  summary: "say what emptying this node would do",
  description: "Says what emptying this node would do. To do it: kubectl drain.",
  options: {
    ...dryRunOption,
    timeout: { type: "text", value: "DURATION", means: "which pods may take longer than this, such as 5m" },
    ...outputOptions,
    ...rootDirOption,
  },
  examples: [{ line: "drain --dry-run --timeout 5m", means: "who would not be gone within five minutes" }],
} as const satisfies CommandDescription;
