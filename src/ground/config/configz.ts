import type { AgentConfig } from "./agent-config.ts";
import { valueAt } from "./candidate.ts";
import { type FieldPath, fieldPaths, optionalStructs, specOf } from "./fields/fields.ts";
import type { KubeletConfiguration } from "./kubelet-configuration.ts";

/** The body of /configz: the configuration with the names and the notation of a v1beta1 file. */
export function toConfigz(config: AgentConfig): { readonly kubeletconfig: Readonly<Record<string, unknown>> } {
  return { kubeletconfig: toV1beta1(config.kubelet) };
}

interface Struct {
  [name: string]: unknown;
}

// Always written, even when empty.
const always: ReadonlySet<FieldPath> = new Set(["containerRuntimeEndpoint", "logging.verbosity"]);

function toV1beta1(kubelet: KubeletConfiguration): Readonly<Record<string, unknown>> {
  const root: Struct = {};
  for (const path of fieldPaths) {
    const segments = path.split(".");
    const struct = optionalStructs.find((name) => name === segments[0]);
    if (struct !== undefined && kubelet[struct] === undefined) continue;
    let parent = root;
    for (const name of segments.slice(0, -1)) {
      parent[name] ??= {};
      parent = parent[name] as Struct;
    }
    const value = valueAt(kubelet, path);
    if (value !== undefined && (always.has(path) || !isOmitted(path, value))) {
      parent[segments.at(-1) ?? ""] = specOf(path).kind.encode(value as NonNullable<unknown>);
    }
  }
  return root;
}

/** Go leaves out empty values that are not pointers; durations and quantities are structs to it, never empty. */
function isOmitted(path: FieldPath, value: unknown): boolean {
  if (specOf(path).pointer) return false;
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  if (specOf(path).kind.unit !== undefined || path.endsWith(".infoBufferSize")) return false;
  return value === "" || value === 0 || value === false;
}
