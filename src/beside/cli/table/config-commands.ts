import type { CommandDescription } from "./description.ts";
import { outputOptions, rootDirOption } from "./shared-options.ts";

const fileOperand = {
  name: "FILE",
  means: "a KubeletConfiguration that is to stand in for the file of --config",
  presence: "required",
} as const;

export const configDiffDescription = {
  name: "config diff",
  group: "nodelet",
  summary: "say what another configuration file would change, and when that would be in effect",
  description:
    "Compares what the agent runs with to what it would run with if FILE stood in for the file of --config. For each setting that changes it says whether that is in effect at once, with a restart of the agent that no container notices, not while the agent runs, or never because no part acts on it.",
  operands: [fileOperand],
  options: { ...rootDirOption, ...outputOptions },
  examples: [{ line: "config diff new.yaml", means: "what would this file change?" }],
} as const satisfies CommandDescription;

export const configTryDescription = {
  name: "config try",
  group: "nodelet",
  summary: "run with another configuration file for a while",
  description:
    'Has the agent run with FILE in place of the file of --config. It goes back by itself when the agent does not work with it (the runtime, its ports, the API server if it was there before), when its process ends, also by a loss of power, and when its time is over, unless somebody says "nodelet config keep".',
  operands: [fileOperand],
  options: {
    for: { type: "time", value: "TIME", default: "2m", means: "how long" },
    ...rootDirOption,
    ...outputOptions,
  },
  examples: [{ line: "config try new.yaml --for 5m", means: "and go back after five minutes" }],
} as const satisfies CommandDescription;

export const configKeepDescription = {
  name: "config keep",
  group: "nodelet",
  summary: "stay with the configuration that is being tried",
  description:
    "Stays with what is being tried, also over restarts, until the files of the agent say something else than they do now. A configuration of the files that is being tried counts as good from now on.",
  options: { ...rootDirOption, ...outputOptions },
  examples: [{ line: "config keep", means: "after a trial that went well" }],
} as const satisfies CommandDescription;

export const configBackDescription = {
  name: "config back",
  group: "nodelet",
  summary: "go back from the configuration that is being tried",
  description: "Ends a trial by hand before its time: the agent runs with what it ran with before.",
  options: { ...rootDirOption, ...outputOptions },
  examples: [{ line: "config back", means: "enough seen" }],
} as const satisfies CommandDescription;

export const configHistoryDescription = {
  name: "config history",
  group: "nodelet",
  summary: "say which configurations were tried, kept and taken back, and why",
  description:
    "Says which configuration the agent runs with, which one is known to be good, what is being tried and for how long, why what is wanted is not in use, and what happened before.",
  options: { ...rootDirOption, ...outputOptions },
  examples: [{ line: "config history", means: "why was my change taken back?" }],
} as const satisfies CommandDescription;
