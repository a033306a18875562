import type { CommandDescription } from "./description.ts";
import { namespaceOption, outputOptions, podOperand, rootDirOption } from "./shared-options.ts";

const containerOption = {
  container: {
    type: "text",
    short: "c",
    value: "NAME",
    completes: "container",
    means: "which container; needed only where a pod has several and none is its default",
  },
} as const;

export const whyDescription = {
  name: "why",
  group: "pods",
  summary: "say what a pod, or everything on this node, is waiting for",
  description:
    "Says what a pod is waiting for, since when, what happened to it so far and when the next try is due. Without a pod: everything that waits on this node, the longest first.",
  operands: [{ ...podOperand, presence: "optional" }],
  options: { ...namespaceOption, ...outputOptions, ...rootDirOption },
  examples: [
    { line: "why", means: "everything that waits on this node" },
    { line: "why shop/web-0", means: "one pod, with its history" },
  ],
} as const satisfies CommandDescription;

export const blameDescription = {
  name: "blame",
  group: "pods",
  summary: "say where the time of a pod's start went",
  description: "Says where the time from the first sight of a pod to its ready containers went, and its longest steps.",
  operands: [podOperand],
  options: { ...namespaceOption, ...outputOptions, ...rootDirOption },
  examples: [{ line: "blame web", means: "sandbox, images, containers, hooks, volumes" }],
} as const satisfies CommandDescription;

export const podsDescription = {
  name: "pods",
  group: "pods",
  summary: "list the pods of this node and their containers",
  description:
    "Lists the pods of this node with their containers, as the agent sees them now; on machines without kubectl, and while the API server is away.",
  operands: [{ ...podOperand, presence: "optional", means: "only this one: name, namespace/name or uid" }],
  options: {
    watch: { type: "flag", short: "w", means: "go on and show changes as they happen, until Ctrl-C" },
    ...namespaceOption,
    "all-namespaces": { type: "flag", short: "A", means: "pods of all namespaces, as without it" },
    output: {
      type: "choice",
      short: "o",
      values: ["text", "wide", "json", "yaml"],
      default: "text",
      means: "for people, wide with node and readiness gates as kubectl has them; or for programs",
    },
    json: outputOptions.json,
    ...rootDirOption,
  },
  examples: [
    { line: "pods", means: "all pods" },
    { line: "pods -w", means: "a live table" },
    { line: "pods web -o yaml", means: "one pod, for a program" },
  ],
} as const satisfies CommandDescription;

export const topDescription = {
  name: "top",
  group: "pods",
  summary: "say how much CPU and memory the node and its pods use",
  description:
    "Says how much CPU and memory the node, its pods and their containers use, measured over one second; who uses most comes first.",
  options: {
    sort: { type: "choice", values: ["cpu", "memory"], default: "cpu", means: "by what" },
    containers: { type: "flag", means: "each container, too" },
    ...namespaceOption,
    ...outputOptions,
    ...rootDirOption,
  },
  examples: [{ line: "top --sort memory", means: "who uses most memory" }],
} as const satisfies CommandDescription;

export const logsDescription = {
  name: "logs",
  group: "pods",
  summary: "show what a container has written",
  description:
    "Shows what a container of this node has written to stdout and stderr, across rotations. On a terminal, control characters are spelt out so that a log can't steer it.",
  operands: [podOperand],
  options: {
    ...containerOption,
    "all-containers": { type: "flag", means: "of every container of the pod" },
    follow: { type: "flag", short: "f", means: "go on with what is written from now on" },
    previous: { type: "flag", short: "p", means: "of the instance before the present one" },
    tail: { type: "count", value: "LINES", orAll: true, means: "only so many of the last lines; -1 for all" },
    since: {
      type: "time",
      value: "TIME",
      means: "only what is younger: a number of seconds, or a duration such as 5m",
    },
    "since-time": {
      type: "text",
      value: "TIME",
      means: "only what was written from then on, such as 2026-11-17T09:00:00Z",
    },
    "limit-bytes": { type: "count", value: "BYTES", means: "no more than so many bytes of each container" },
    timestamps: { type: "flag", means: "the time before each line" },
    prefix: { type: "flag", means: "the names of pod and container before each line" },
    raw: { type: "flag", means: "the bytes as they are, on a terminal too" },
    ...namespaceOption,
    output: { ...outputOptions.output, means: "for people, or for programs: one object per line, with its time" },
    json: outputOptions.json,
    ...rootDirOption,
  },
  examples: [
    { line: "logs web -f --tail 20", means: "the last 20 lines, and what follows" },
    { line: "logs web --all-containers -o json --since 1h", means: "for a program" },
    { line: "logs shop/web-0 -c proxy -p", means: "what the container wrote before it was restarted" },
  ],
} as const satisfies CommandDescription;

export const execDescription = {
  name: "exec",
  group: "pods",
  summary: "run a command in a container",
  description:
    "Runs a command in a running container of this node. Only root may: it goes through the agent's socket, which nobody else can open.",
  operands: [podOperand],
  options: {
    ...containerOption,
    stdin: { type: "flag", short: "i", means: "pass on what is typed or piped in" },
    tty: { type: "flag", short: "t", means: "give the command a terminal" },
    ...namespaceOption,
    ...rootDirOption,
  },
  passesOn: "COMMAND",
  exits: [{ code: "N", means: "the exit code of the command in the container" }],
  examples: [
    { line: "exec web -it -- sh", means: "a shell" },
    { line: "exec web -c proxy -- cat /etc/hosts", means: "one command" },
  ],
} as const satisfies CommandDescription;
