import type { ConfigMap, Pod, PodList, Secret } from "./kube/gen/types.ts";
import { isError, type Position, type Problem, ProblemList } from "./problem.ts";

/** The kinds of objects that may stand in a manifest. */
export interface ManifestKinds {
  readonly Pod: Pod;
  readonly PodList: PodList;
  readonly ConfigMap: ConfigMap;
  readonly Secret: Secret;
}

export interface DecodedManifest<Kind extends keyof ManifestKinds> {
  /** Deeply frozen; undefined when any problem is an error. */
  readonly object: ManifestKinds[Kind] | undefined;
  readonly problems: readonly Problem[];
  /** Where a field such as `spec.containers[0].image` stands in the text, or the nearest thing around it. */
  locate(field: string): Position | undefined;
}

export const maxManifestBytes = 10 * 1024 * 1024;

// A machine-made file can be wrong a million times; nobody reads more than this.
const problemsShown = 500;

/** Reads one object from YAML or JSON. Never throws: whatever is wrong is in `problems`, each with its position. */
export async function decodeManifest<Kind extends keyof ManifestKinds>(
  text: string,
  kinds: readonly [Kind, ...Kind[]],
): Promise<DecodedManifest<Kind>> {
  const [{ parseYaml }, { decodeObject, isPlainObject, kindOf }] = await Promise.all([
    import("./manifest-yaml.ts"),
    import("./manifest-schema.ts"),
  ]);
  const parsed = parseYaml(text);
  const locate = (field: string): Position | undefined => parsed.locate(field);
  if (parsed.problems.some(isError)) return { object: undefined, problems: parsed.problems, locate };
  const problems = new ProblemList();
  const { value } = parsed;
  if (value === null || value === undefined) {
    problems.add({ severity: "error", field: "", message: `The manifest is empty; wanted a ${kinds.join(" or ")}` });
  } else if (!isPlainObject(value)) {
    problems.add({
      severity: "error",
      field: "",
      message: `The manifest holds ${kindOf(value)}; wanted a ${kinds.join(" or ")}`,
    });
  }
  const found = isPlainObject(value) ? value : {};
  const kind = problems.length > 0 ? undefined : checkKind(found, kinds, problems);
  const object = kind === undefined ? undefined : decodeObject(found, kind, "", problems);
  const located = problems.problems.slice(0, problemsShown).map((problem) => locateProblem(problem, locate));
  const leftOut = problems.length - located.length;
  const all = [...parsed.problems, ...located, ...(leftOut > 0 ? [andMore(leftOut)] : [])];
  return { object: all.some(isError) ? undefined : (object as ManifestKinds[Kind]), problems: all, locate };
}

/** The problem with its place in the text, unless it has one or none is known. */
export function locateProblem(problem: Problem, locate: (field: string) => Position | undefined): Problem {
  if (problem.position !== undefined || problem.field === "") return problem;
  const position = locate(problem.field);
  return position === undefined ? problem : { ...problem, position };
}

/** The kind to check the object against: the first wanted one when none is given, so that other problems show too. */
function checkKind<Kind extends keyof ManifestKinds>(
  found: Readonly<Record<string, unknown>>,
  kinds: readonly [Kind, ...Kind[]],
  problems: ProblemList,
): Kind | undefined {
  const { apiVersion, kind } = found;
  if (apiVersion === undefined || apiVersion === null || apiVersion === "")
    problems.required("apiVersion", 'must be "v1"');
  else if (apiVersion !== "v1") problems.unsupported("apiVersion", apiVersion, ["v1"]);
  if (kind === undefined || kind === null || kind === "") {
    problems.required("kind", `must be ${kinds.map((name) => `"${name}"`).join(" or ")}`);
    return kinds[0];
  }
  const known = kinds.find((name) => name === kind);
  if (known === undefined) problems.unsupported("kind", kind, kinds);
  return known;
}

function andMore(count: number): Problem {
  return { severity: "error", field: "", message: `${count} more problems are not shown` };
}
