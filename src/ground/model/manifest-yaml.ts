import { Composer, type Document, isNode, LineCounter, Parser, type ScalarTag, type Tags } from "yaml";
import { boundNesting, messageOf } from "../base/index.ts";
import { type Position, type Problem, show } from "./problem.ts";
import { repeatedKeys } from "./unique-keys.ts";

export interface ParsedYaml {
  /** Plain data of the first document; whole numbers are bigints. undefined when the text could not be parsed. */
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Where a field such as `spec.containers[0].image` stands, or the nearest thing around it. */
  locate(field: string): Position | undefined;
}

// One broken bracket can make every later line wrong; the first few errors are the useful ones.
const syntaxErrorsShown = 5;

/** Reads YAML as Kubernetes tools do (YAML 1.1, and therefore also JSON). Never throws. */
export function parseYaml(text: string): ParsedYaml {
  const lines = new LineCounter();
  try {
    const { first, hasMore } = firstDocument(text, lines);
    const problems = syntaxProblems(first, text, lines);
    if (problems.length > 0) return { value: undefined, problems, locate: () => undefined };
    const value: unknown = first === undefined ? null : first.toJS({ maxAliasCount: 100 });
    return { value, problems: hasMore ? [onlyFirstIsUsed] : [], locate: (field) => locate(first, lines, field) };
  } catch (error) {
    // Not only bad input ends here but also input made to hurt, such as thousands of nested brackets.
    const problem: Problem = { severity: "error", field: "", message: `Cannot parse as YAML: ${messageOf(error)}` };
    return { value: undefined, problems: [problem], locate: () => undefined };
  }
}

const onlyFirstIsUsed: Problem = {
  severity: "warning",
  field: "",
  message: "The file holds more than one YAML document; only the first is used, put each pod in a file of its own",
};

function firstDocument(text: string, lines: LineCounter): { first: Document | undefined; hasMore: boolean } {
  const isJson = /^\s*\{/.test(text);
  const composer = new Composer({
    version: "1.1",
    // Looked for below, in time that grows with the text and not with its square.
    uniqueKeys: false,
    prettyErrors: false,
    customTags: isJson ? jsonTags : kubernetesTags,
  });
  const parser = new Parser(lines.addNewLine);
  let first: Document | undefined;
  for (const document of composer.compose(boundNesting(parser.parse(text)))) {
    if (first !== undefined) return { first, hasMore: true };
    first = document;
  }
  return { first, hasMore: false };
}

function syntaxProblems(document: Document | undefined, text: string, lines: LineCounter): readonly Problem[] {
  if (document === undefined) return [];
  const syntax = document.errors.map(({ pos, message }) => ({ offset: pos[0], reason: message.split("\n", 1)[0] }));
  const repeated = repeatedKeys(document, syntaxErrorsShown).map((offset) => ({
    offset,
    reason: `The key ${keyAt(text, offset)} stands twice in the same map`,
  }));
  return [...syntax, ...repeated].slice(0, syntaxErrorsShown).map(({ offset, reason }) => {
    const { line, col } = lines.linePos(offset);
    return {
      severity: "error",
      field: "",
      message: `Cannot parse as YAML: ${reason}`,
      position: { line, column: col },
    };
  });
}

function keyAt(text: string, offset: number): string {
  return show(/^[^:\n]*/.exec(text.slice(offset, offset + 100))?.[0]?.replace(/^["']|["']$/g, "") ?? "");
}

const segmentPattern = /\[([^\]]*)\]|([^.[\]]+)/g;

function locate(document: Document | undefined, lines: LineCounter, field: string): Position | undefined {
  if (document === undefined) return undefined;
  const path = [...field.matchAll(segmentPattern)].map(([, bracketed, name]) => bracketed ?? name ?? "");
  for (let length = path.length; length > 0; length--) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    if (!isNode(node) || !node.range) continue;
    const { line, col } = lines.linePos(node.range[0]);
    return { line, column: col };
  }
  return undefined;
}

/**
 * YAML 1.1 as the Go tools understand it: no sexagesimal numbers (`80:80` is a string), no dates, exponents only with
 * a sign, and octal also as `0o644`.
 */
const kubernetesTags = (tags: Tags): Tags => [...tags.filter(keepsMeaning), integerTag, floatTag(/[-+]/)];
/** JSON knows exponents without a sign, too. */
const jsonTags = (tags: Tags): Tags => [...tags.filter(keepsMeaning), integerTag, floatTag(/[-+]?/)];

const keptTags: ReadonlySet<string> = new Set(
  ["map", "seq", "str", "null", "bool", "merge"].map((name) => `tag:yaml.org,2002:${name}`),
);

/** What JSON has no words for (dates, sets, ordered maps, bytes) is read as the text or map that it is written as. */
function keepsMeaning(tag: Tags[number]): boolean {
  return typeof tag === "string" ? tag === "merge" : keptTags.has(tag.tag);
}

const integerTag: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?(?:0[bB]_*[01][01_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[oO]_*[0-7][0-7_]*|[0-9][0-9_]*)$/,
  resolve: (text) => {
    const digits = text.replaceAll("_", "");
    const sign = digits.startsWith("-") ? -1n : 1n;
    const body = digits.replace(/^[-+]/, "").toLowerCase();
    if (/^0[0-7]+$/.test(body)) return sign * BigInt(`0o${body}`);
    return sign * BigInt(body);
  },
};

function floatTag(exponentSign: RegExp): ScalarTag {
  return {
    tag: "tag:yaml.org,2002:float",
    default: true,
    test: new RegExp(
      `^(?:[-+]?[0-9_]*\\.?[0-9_]*[0-9][0-9_]*(?:[eE]${exponentSign.source}[0-9]+)?|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$`,
    ),
    resolve: (text) => {
      if (/nan$/i.test(text)) return Number.NaN;
      if (/inf$/i.test(text)) return text.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
      return Number(text.replaceAll("_", ""));
    },
  };
}
