export const defaultStateDir = "/var/lib/nodelet";
export const kubeletRoot = "/var/lib/kubelet";

/** For every command: its help instead of its work. */
export const helpOption = { help: { type: "flag", short: "h", means: "say how the command is used" } } as const;

/** For commands that ask a running agent. */
export const rootDirOption = {
  "root-dir": {
    type: "text",
    value: "DIR",
    completes: "directory",
    means: `the agent's root directory (default: that of "nodelet up" if it runs, else ${kubeletRoot})`,
  },
} as const;

/** For commands that name pods. */
export const namespaceOption = {
  namespace: { type: "text", short: "n", value: "NAME", means: "only pods of this namespace" },
} as const;

/** For commands that answer. */
export const outputOptions = {
  output: {
    type: "choice",
    short: "o",
    values: ["text", "json"],
    default: "text",
    means: "for people, or for programs",
  },
  json: { type: "flag", means: "the same as --output json" },
} as const;

export const stateDirOption = {
  "state-dir": {
    type: "text",
    value: "DIR",
    default: defaultStateDir,
    completes: "directory",
    means: "where containerd, the API server and the agent keep their files",
  },
} as const;

/** A pod as people name it. */
export const podOperand = {
  name: "POD",
  means: "name, namespace/name or uid",
  presence: "required",
  completes: "pod",
} as const;
