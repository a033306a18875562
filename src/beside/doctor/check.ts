import { describeOrigin, type EffectiveSetting, type Origin } from "../../ground/config/index.ts";
import { type ConfigFacts, type Facts, settingText } from "./facts.ts";
import type { FilePlace, State } from "./finding.ts";

/** One question about the node: a pure function over what was gathered. */
export interface Check {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  readonly benchmark?: "automated" | "manual";
  readonly look: (facts: Facts) => Judgement;
}

export interface Judgement {
  readonly state: State;
  readonly seen: string;
  readonly source?: Source;
  readonly fix?: string;
}

/** Where something comes from. */
export interface Source {
  readonly text: string;
  readonly place?: FilePlace;
}

export function passed(seen: string, source?: Source): Judgement {
  return verdict("pass", seen, undefined, source);
}

export function failed(seen: string, fix: string, source?: Source): Judgement {
  return verdict("fail", seen, fix, source);
}

export function warned(seen: string, fix: string, source?: Source): Judgement {
  return verdict("warn", seen, fix, source);
}

export function manual(seen: string, fix?: string, source?: Source): Judgement {
  return verdict("manual", seen, fix, source);
}

export function notApplicable(seen: string): Judgement {
  return verdict("n/a", seen, undefined, undefined);
}

export function unknown(seen: string, fix?: string): Judgement {
  return verdict("unknown", seen, fix, undefined);
}

function verdict(state: State, seen: string, fix: string | undefined, source: Source | undefined): Judgement {
  return { state, seen, ...(fix !== undefined && { fix }), ...(source !== undefined && { source }) };
}

/** The origin of a setting as people read it, with its place where it has one. */
export function sourceOf(origin: Origin): Source {
  const text = describeOrigin(origin);
  if (origin.from !== "file" && origin.from !== "drop-in") return { text };
  return { text, place: { file: origin.path, line: origin.line } };
}

export function fileSource(file: string): Source {
  return { text: file, place: { file } };
}

/** A word of a command line as a shell takes it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** How to give a setting another value, at the place where it has the present one. */
export function mend(config: ConfigFacts, setting: EffectiveSetting, value: unknown, flag: string): string {
  const { name, origin } = setting;
  const shown = JSON.stringify(value);
  const restart = "then restart the agent";
  switch (origin.from) {
    case "flag":
      return `start the agent with --${origin.flag}=${shellWord(String(value))} instead of its present value`;
    case "file":
    case "drop-in":
      return `in ${origin.path}, line ${origin.line}: set ${name} to ${shown}; ${restart}`;
    case "default": {
      const file = settingText(config, "--config");
      if (file === "" && flag !== "") return `start the agent with --${flag}=${shellWord(String(value))}`;
      return `${addition(config, name, shown, file)}; ${restart}`;
    }
  }
}

/** A block that the file has already must not be written a second time: the agent would refuse the file. */
function addition({ report }: ConfigFacts, name: string, value: string, file: string): string {
  if (file === "") return `add to its configuration file (--config): ${yamlOf(name.split("."), value)}`;
  const parts = name.split(".");
  for (let depth = parts.length - 1; depth > 0; depth--) {
    const block = parts.slice(0, depth).join(".");
    const isThere = report.fields.some(
      ({ name: other, origin }) => other.startsWith(`${block}.`) && origin.from === "file" && origin.path === file,
    );
    if (isThere) return `in ${file}, add below ${block}: ${yamlOf(parts.slice(depth), value)}`;
  }
  return `add to ${file}: ${yamlOf(parts, value)}`;
}

/** A path of fields and a value as one line of YAML. */
function yamlOf([first = "", ...others]: readonly string[], value: string): string {
  const inner = others.reduceRight((text, part) => `{${part}: ${text}}`, value);
  return `${first}: ${inner}`;
}
