import type { CommandDescription } from "./description.ts";
import { outputOptions } from "./shared-options.ts";

export const configDescription = {
  name: "config",
  group: "nodelet",
  summary: "show or check the configuration that the agent would start with",
  description:
    'Shows the configuration that the agent would start with, as YAML, and where each value comes from. Give the flags that the agent gets, such as --config=/etc/kubernetes/kubelet.yaml; "nodelet --help" lists them.',
  options: {
    check: { type: "flag", means: "only check it: say every problem; exit code 0 when there is none, else 1" },
    ...outputOptions,
  },
  takesAgentFlags: true,
  examples: [{ line: "config --check --config /var/lib/kubelet/config.yaml", means: "would the agent start with it?" }],
} as const satisfies CommandDescription;

export const versionDescription = {
  name: "version",
  group: "nodelet",
  summary: "say which version this is",
  description: "Says which version of nodelet this is, and which kubelet it stands in for.",
  options: { ...outputOptions },
  examples: [],
} as const satisfies CommandDescription;

export const helpDescription = {
  name: "help",
  group: "nodelet",
  summary: "say this, or more about a command",
  description: "Lists the commands, or says what a command does and takes.",
  operands: [{ name: "COMMAND", means: "which command", presence: "repeated", completes: "command" }],
  options: {},
  examples: [{ line: "help why", means: 'the same as "nodelet why --help"' }],
} as const satisfies CommandDescription;

export const completionDescription = {
  name: "completion",
  group: "nodelet",
  summary: "print what makes a shell complete the commands, their options and names of pods",
  description:
    "Prints a script that makes bash or zsh complete commands, options, and the names of pods and containers, which it asks the running agent for.",
  operands: [{ name: "SHELL", means: "bash or zsh", presence: "required", completes: ["bash", "zsh"] }],
  options: {},
  examples: [
    { line: "completion bash > /etc/bash_completion.d/nodelet", means: "for all users of bash" },
    { line: "completion zsh > /usr/local/share/zsh/site-functions/_nodelet", means: "for all users of zsh" },
  ],
} as const satisfies CommandDescription;

export const manDescription = {
  name: "man",
  group: "nodelet",
  summary: "print the manual page",
  description: "Prints the manual page of all commands, in the language of man(1).",
  options: {},
  examples: [{ line: "man | man -l -", means: "read it" }],
} as const satisfies CommandDescription;

/** What the script of `completion` calls on every tab. */
export const completeDescription = {
  name: "__complete",
  group: "nodelet",
  summary: "say how a line may go on",
  description: "Says how a line may go on, one possibility in each line, what it means after a tab.",
  options: {},
  passesOn: "LINE",
  isHidden: true,
  examples: [],
} as const satisfies CommandDescription;
