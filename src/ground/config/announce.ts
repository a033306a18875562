import type { Logger, LogWriter } from "../base/index.ts";
import type { AgentConfig, ConfigWarning, InvalidConfig } from "./agent-config.ts";
import type { toConfigz } from "./configz.ts";
import { effectiveFields, effectiveFlags } from "./effective.ts";
import { describeConfigProblem } from "./load.ts";

/** Deprecated flags are said as the kubelet says them, in plain words on stderr; the rest are log lines. */
export function announceConfig(warnings: readonly ConfigWarning[], logWriter: LogWriter): void {
  const log = logWriter.logger("config");
  for (const { kind, message } of warnings) {
    if (kind === "deprecated-flag") logWriter.plain(`${message}\n`);
    else if (kind === "note") log.info(message);
    else log.warn(message);
  }
}

/** One problem is a line; of several each has its own. */
export function complaintAbout({ message, step, problems }: InvalidConfig): string {
  if (problems.length < 2) return message;
  return [`${step}${problems.length} problems`, ...problems.map(describeConfigProblem)].join("\n  ");
}

/** What a user asked for and does not get must not pass in silence. */
export function announceUnheeded(config: AgentConfig, log: Logger): void {
  const given = [...effectiveFields(config), ...effectiveFlags(config)].filter(
    ({ origin }) => origin.from !== "default",
  );
  const settings = given.filter(({ effect }) => effect === "not yet").map(({ name }) => name);
  if (settings.length > 0) log.warn("These settings are read and checked, but nothing acts on them yet", { settings });
}

/** Headers for the manifest URL may carry credentials; a log is not the place for them. */
export function withoutHeaderValues(
  { kubeletconfig }: ReturnType<typeof toConfigz>,
  { kubelet }: AgentConfig,
): unknown {
  const names = Object.keys(kubelet.staticPodURLHeader);
  if (names.length === 0) return kubeletconfig;
  return { ...kubeletconfig, staticPodURLHeader: Object.fromEntries(names.map((name) => [name, ["<masked>"]])) };
}
