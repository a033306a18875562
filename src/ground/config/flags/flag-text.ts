import { formatDuration } from "../../base/index.ts";
import type { Taint } from "../../model/index.ts";
import type { MemoryReservation, VModuleItem } from "../kubelet-configuration.ts";
import { durationKind, headersKind, langleMapKind, reservedMemoryKind, taintsKind, vmoduleKind } from "./flag-kinds.ts";
import { type Flag, flagTable } from "./flag-table.ts";

/** Every flag with its value as text: the one given, or the default of a start without configuration file. */
export function flagTexts(values: ReadonlyMap<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    [...flagTable.values()].map((flag) => [flag.name, flagText(flag, values.get(flag.name) ?? flag.default)]),
  );
}

/** A flag's value as it could be written on the command line. */
export function flagText({ kind }: Flag, value: unknown): string {
  switch (kind) {
    case durationKind:
      return formatDuration(Number(value));
    case langleMapKind:
      return pairs(value as Readonly<Record<string, string>>, "<");
    case headersKind:
      // Headers carry tokens, and this text ends up in logs.
      return Object.keys(value as object)
        .sort()
        .map((name) => `${name}:<masked>`)
        .join(",");
    case taintsKind:
      return (value as readonly Taint[]).map((taint) => `${taint.key}=${taint.value ?? ""}:${taint.effect}`).join(",");
    case vmoduleKind:
      return (value as readonly VModuleItem[]).map((item) => `${item.filePattern}=${item.verbosity}`).join(",");
    case reservedMemoryKind:
      return (value as readonly MemoryReservation[])
        .map(({ numaNode, limits }) => `${numaNode}:${pairs(limits, "=")}`)
        .join(";");
    default:
      if (Array.isArray(value)) return `[${value.join(",")}]`;
      return typeof value === "object" && value !== null ? pairs(value as Record<string, unknown>, "=") : String(value);
  }
}

function pairs(map: Readonly<Record<string, unknown>>, separator: string): string {
  return Object.entries(map)
    .sort(byName)
    .map(([name, text]) => `${name}${separator}${String(text)}`)
    .join(",");
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
