import { describeOrigin, type EffectiveSetting, type Origin } from "../../ground/config/index.ts";

/** The settings as a configuration file that could be read again, with a comment after each value. */
export function configYaml(fields: readonly EffectiveSetting[], flags: readonly EffectiveSetting[]): string {
  const lines = ["apiVersion: kubelet.config.k8s.io/v1beta1", "kind: KubeletConfiguration"];
  let open: string[] = [];
  for (const setting of fields) {
    const segments = setting.name.split(".");
    const parents = segments.slice(0, -1);
    const shared = parents.findIndex((name, depth) => open[depth] !== name);
    const from = shared < 0 ? parents.length : shared;
    if (setting.value !== undefined) {
      for (let depth = from; depth < parents.length; depth++) lines.push(`${indent(depth)}${parents[depth]}:`);
      open = parents;
    }
    lines.push(...settingLines(setting, segments.at(-1) ?? "", parents.length));
  }
  lines.push("# Flags that are no fields of the file:");
  for (const { name, value, origin } of flags) {
    const text = /[\p{Cc}]/u.test(String(value)) ? JSON.stringify(value) : String(value);
    lines.push(`# ${name}=${text}  # ${describeOrigin(origin)}`);
  }
  return `${lines.join("\n")}\n`;
}

function settingLines(setting: EffectiveSetting, key: string, depth: number): string[] {
  const { name, value, origin, keyOrigins } = setting;
  const change = changeWords(setting);
  if (value === undefined) return [`# ${name} is not set  # ${describeOrigin(origin)}${change}`];
  const entries = Object.entries(keyOrigins);
  if (entries.length === 0) return [`${line(depth, key, value, origin)}${change}`];
  const map = value as Readonly<Record<string, unknown>>;
  return [
    `${indent(depth)}${key}:  # ${describeOrigin(origin)}${change}`,
    ...entries.map(([entry, entryOrigin]) => line(depth + 1, scalar(entry), map[entry], entryOrigin)),
  ];
}

/** When a change of the setting in the files is in effect. */
function changeWords({ whenChanged, effect }: EffectiveSetting): string {
  if (whenChanged === undefined || effect !== "yes") return "";
  if (typeof whenChanged === "object") return "; fixed while the agent runs";
  return whenChanged === "at once" ? "; changes at once" : "; changes with a restart";
}

function line(depth: number, key: string, value: unknown, origin: Origin): string {
  return `${indent(depth)}${key}: ${scalar(value)}  # ${describeOrigin(origin)}`;
}

function indent(depth: number): string {
  return "  ".repeat(depth);
}

/** A value on one line. JSON is YAML; plain words are easier to read where no YAML reader could mistake them. */
function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const isPlain = /^[/A-Za-z][\w./:@-]*$/.test(value) && !value.endsWith(":");
  const isOtherType = /^(?:y|n|yes|no|on|off|true|false|null)$/i.test(value);
  return isPlain && !isOtherType ? value : JSON.stringify(value);
}
