import { type DecodedManifest, locateProblem, type ManifestKinds } from "./manifest-kinds.ts";
import { decodeObject, isPlainObject, kindOf } from "./manifest-schema.ts";
import { parseYaml } from "./manifest-yaml.ts";
import { describeProblem, isError, type Position, type Problem, ProblemList } from "./problem.ts";

// A machine-made file can be wrong a million times; nobody reads more than this.
const problemsShown = 500;

/** Reads one object on this thread; whatever is wrong is in `problems`. */
export function decodeText<Kind extends keyof ManifestKinds>(
  text: string,
  kinds: readonly [Kind, ...Kind[]],
): DecodedManifest<Kind> {
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

/** Plain data as JSON would have it; throws what is wrong with the text. */
export function plainValue(text: string): unknown {
  const { value, problems } = parseYaml(text);
  const [wrong] = problems.filter(isError);
  if (wrong !== undefined) throw new Error(describeProblem(wrong));
  return withNumbers(value);
}

/** Whole numbers are read as bigints, so that none is rounded unseen; JSON has only one kind. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(withNumbers);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withNumbers(item)]));
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
