import { type FieldPath, fieldPaths, specOf } from "../fields/fields.ts";
import type { FlagKind } from "./flag-kinds.ts";
import { type FlagOnlyName, flagOnly } from "./flag-only.ts";

const useConfigFile =
  "This parameter should be set via the config file specified by the Kubelet's --config flag. See " +
  "https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information.";

/** A flag as the command line sees it, whichever table it comes from. */
export interface Flag {
  readonly name: string;
  readonly shorthand: string | undefined;
  readonly kind: FlagKind<unknown>;
  /** The default of a start without configuration file. */
  readonly default: unknown;
  readonly deprecated: string | undefined;
  readonly help: string;
  /** The field it sets; undefined for a flag-only one. */
  readonly field: FieldPath | undefined;
}

/** All flags, by name. */
export const flagTable: ReadonlyMap<string, Flag> = new Map(
  [...flagsOfFields(), ...flagsOnly()].sort((a, b) => (a.name < b.name ? -1 : 1)).map((flag) => [flag.name, flag]),
);

function flagsOfFields(): Flag[] {
  return fieldPaths.flatMap((path) => {
    const { flag, legacyDefault, help, ...spec } = specOf(path);
    if (flag === undefined) return [];
    return {
      name: flag.name,
      shorthand: flag.shorthand,
      kind: flag.kind as FlagKind<unknown>,
      default: legacyDefault ?? spec.default,
      deprecated: flag.deprecated ? useConfigFile : undefined,
      help,
      field: path,
    };
  });
}

function flagsOnly(): Flag[] {
  return (Object.keys(flagOnly) as FlagOnlyName[]).map((name) => {
    const spec: (typeof flagOnly)[FlagOnlyName] = flagOnly[name];
    return {
      name,
      shorthand: spec.shorthand,
      kind: spec.kind as FlagKind<unknown>,
      default: spec.default,
      deprecated: spec.deprecated,
      help: spec.help,
      field: undefined,
    };
  });
}
