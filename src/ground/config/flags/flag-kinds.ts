import { isIP } from "node:net";
import { goQuote } from "../../base/index.ts";
import type { Taint } from "../../model/index.ts";
import { isHugePages, tryParseQuantity } from "../../model/index.ts";
import type { MemoryReservation, VModuleItem } from "../kubelet-configuration.ts";
import { durationOf } from "../text/duration-text.ts";
import { parseBool, parseCsvRecord, parseInteger, parseVerbosity, TextError } from "../text/go-text.ts";
import { labelValueProblems, qualifiedNameProblems } from "../text/label-syntax.ts";
import { KUBERNETES_VERSION } from "../version.ts";

/** How the text after a flag becomes a value. */
export interface FlagKind<Value> {
  /** Shown in the help text. */
  readonly type: string;
  /** The text that stands for the bare flag; flags without one need a value. */
  readonly bare?: string;
  /** The value after one more use of the flag; `previous` is what earlier uses on the same command line gave. */
  set(previous: Value | undefined, text: string): Value | undefined;
}

type StringMap = Readonly<Record<string, string>>;

export const boolKind: FlagKind<boolean> = { type: "", bare: "true", set: (_, text) => parseBool(text) };
export const int32Kind: FlagKind<number> = { type: "int32", set: (_, text) => parseInteger(text, 32) };
export const int64Kind: FlagKind<number> = { type: "int", set: (_, text) => parseInteger(text, 64) };
export const stringKind: FlagKind<string> = { type: "string", set: (_, text) => text };
export const durationKind: FlagKind<number> = { type: "duration", set: (_, text) => durationOf(text) };
export const verbosityKind: FlagKind<number> = { type: "Level", set: (_, text) => parseVerbosity(text) };

export const stringsKind: FlagKind<readonly string[]> = {
  type: "strings",
  set: (previous, text) => [...(previous ?? []), ...parseCsvRecord(text)],
};

/** An empty address is ignored, as if the flag had not been given. */
export const ipKind: FlagKind<string> = {
  type: "ip",
  set(previous, text) {
    if (text === "") return previous;
    if (!isAddress(text)) throw new TextError(`${goQuote(text)} is not a valid IP address`);
    return text;
  },
};

export const quantityKind: FlagKind<string> = {
  type: "quantity",
  set(_, text) {
    if (tryParseQuantity(text) === undefined) {
      throw new TextError(`${goQuote(text)} is not a quantity such as 512, 1K or 2Ki`);
    }
    return text;
  },
};

/** `key=value,…`; repeated uses add up. */
export const equalsMapKind = mapKind("=", "mapStringString");
/** `signal<value,…` */
export const langleMapKind = mapKind("<", "mapStringString");

/** One `key=value` for each use: commas belong to the value. */
export const wholeMapKind: FlagKind<StringMap> = {
  type: "mapStringString",
  set: (previous, text) => withEntries(previous, [pair(text, "=")]),
};

/** As the other maps, but a key without `=` gets an empty value. */
export const labelsKind: FlagKind<StringMap> = {
  type: "mapStringString",
  set: (previous, text) =>
    withEntries(
      previous,
      parts(text).map((part) => (part.includes("=") ? pair(part, "=") : [part.trim(), ""])),
    ),
};

export const boolMapKind: FlagKind<Readonly<Record<string, boolean>>> = {
  type: "mapStringBool",
  set: (previous, text) => withEntries(previous, parts(text).map(boolPair)),
};

function boolPair(text: string): [string, boolean] {
  if (!text.includes("=")) throw new TextError("malformed pair, expect string=bool");
  const [name, value] = pair(text, "=");
  try {
    return [name, parseBool(value)];
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    throw new TextError(`invalid value of ${name}: ${value}, err: ${error.message}`);
  }
}

/** `name:value,…`; a name may come more than once. */
export const headersKind: FlagKind<Readonly<Record<string, readonly string[]>>> = {
  type: "colonSeparatedMultimapStringString",
  set(previous, text) {
    const headers = new Map(Object.entries(previous ?? {}));
    for (const part of parts(text)) {
      const [name, value] = pair(part, ":");
      headers.set(name, [...(headers.get(name) ?? []), value]);
    }
    return Object.fromEntries(headers);
  },
};

/** `pattern=N,…` */
export const vmoduleKind: FlagKind<readonly VModuleItem[]> = {
  type: "pattern=N,...",
  set(previous, text) {
    return [...(previous ?? []), ...parts(text).map(vmoduleItem)];
  },
};

function vmoduleItem(text: string): VModuleItem {
  const [filePattern, level, ...more] = text.split("=");
  if (!filePattern || !level || more.length > 0) {
    throw new TextError(`${goQuote(text)} does not have the pattern=N format`);
  }
  try {
    return { filePattern, verbosity: parseVerbosity(level) };
  } catch (error) {
    if (!(error instanceof TextError)) throw error;
    throw new TextError(`parsing verbosity in ${goQuote(text)}: ${error.message}`);
  }
}

/** `key=value:effect,…`; the last use replaces the earlier ones. */
export const taintsKind: FlagKind<readonly Taint[]> = {
  type: "[]v1.Taint",
  set(_, text) {
    if (text === "") return [];
    const seen = new Set<string>();
    // A trailing "-" asks to remove a taint; there is none to remove at registration.
    const specs = text.split(",").filter((spec) => !spec.endsWith("-"));
    return specs.map((spec) => {
      const taint = parseTaint(spec);
      const identity = `${taint.key}:${taint.effect}`;
      if (seen.has(identity)) throw new TextError(`duplicated taints with the same key and effect: ${spec}`);
      seen.add(identity);
      return taint;
    });
  },
};

export const taintEffects: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

function parseTaint(spec: string): Taint {
  const [head = "", effect, ...more] = spec.split(":");
  if (effect === undefined || more.length > 0) throw new TextError(`invalid taint spec: ${spec}`);
  if (!taintEffects.includes(effect)) {
    throw new TextError(`invalid taint effect: ${effect}, unsupported taint effect`);
  }
  const [key = "", value = "", ...rest] = head.split("=");
  if (rest.length > 0) throw new TextError(`invalid taint spec: ${spec}`);
  const problems = [...labelValueProblems(value), ...qualifiedNameProblems(key)];
  if (problems.length > 0) throw new TextError(`invalid taint spec: ${spec}, ${problems.join("; ")}`);
  return { key, value, effect };
}

/** `numa:type=quantity,…`, several nodes separated by `;` or by repeating the flag. */
export const reservedMemoryKind: FlagKind<readonly MemoryReservation[]> = {
  type: "reserved-memory",
  set: (previous, text) => (text === "" ? previous : [...(previous ?? []), ...text.split(";").map(memoryReservation)]),
};

function memoryReservation(text: string): MemoryReservation {
  const [node = "", list, ...more] = text.split(":");
  if (list === undefined || more.length > 0) {
    throw new TextError(
      `the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got ${text}`,
    );
  }
  if (!/^[+-]?[0-9]{1,9}$/.test(node)) {
    throw new TextError(`failed to convert the NUMA node ID, expected integer, got ${node}`);
  }
  const limits = new Map<string, string>();
  for (const part of list.split(",")) {
    const [resource = "", quantity, ...rest] = part.split("=");
    if (quantity === undefined || rest.length > 0) {
      throw new TextError(`the reserved limit has incorrect value, expected type=quantity, got ${part}`);
    }
    if (resource !== "memory" && !isHugePages(resource)) {
      throw new TextError(`memory type conversion error, unknown type: ${goQuote(resource)}`);
    }
    if (tryParseQuantity(quantity) === undefined) {
      throw new TextError(`failed to parse the quantity, expected quantity, got ${quantity}`);
    }
    limits.set(resource, quantity);
  }
  return { numaNode: Number(node), limits: Object.fromEntries(limits) };
}

/** true, false, raw, or a version with the same major, minor and patch as ours. */
export const versionKind: FlagKind<string> = {
  type: "version[=true]",
  bare: "true",
  set(_, text) {
    if (text === "raw") return text;
    if (!text.startsWith("v")) return String(parseBool(text));
    const match = /^(v\d+\.\d+\.\d+)(?:[-+].+)?$/.exec(text);
    if (match === null) throw new TextError(`could not parse ${goQuote(text)} as version`);
    if (match[1] !== KUBERNETES_VERSION) {
      throw new TextError(
        `version ${goQuote(text)} must match major/minor/patch of default version ${goQuote(KUBERNETES_VERSION)}`,
      );
    }
    return text;
  },
};

export function isAddress(text: string): boolean {
  // Go refuses zones, and reads the leading zeros of an IPv4 number as decimal digits.
  if (text.includes("%")) return false;
  return isIP(text) !== 0 || isIP(text.replace(/(^|\.)0+(?=[0-9])/g, "$1")) === 4;
}

function mapKind(separator: string, type: string): FlagKind<StringMap> {
  return {
    type,
    set: (previous, text) =>
      withEntries(
        previous,
        parts(text).map((part) => pair(part, separator)),
      ),
  };
}

function parts(text: string): string[] {
  return text.split(",").filter((part) => part !== "");
}

function pair(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  if (at < 0) throw new TextError(`malformed pair, expect string${separator}string`);
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

// fromEntries rather than assignment, for which a key named __proto__ would be special.
function withEntries<Value>(
  previous: Readonly<Record<string, Value>> | undefined,
  entries: readonly (readonly [string, Value])[],
): Readonly<Record<string, Value>> {
  return Object.fromEntries([...Object.entries(previous ?? {}), ...entries]);
}
