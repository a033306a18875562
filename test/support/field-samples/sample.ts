import assert from "node:assert/strict";
import { test } from "node:test";
import { valueAt } from "../../../src/ground/config/candidate.ts";
import { type FieldPath, specOf } from "../../../src/ground/config/fields/fields.ts";
import { configOf, loadFile, problemsOf } from "../load-config.ts";

/** What to try with a field of the configuration file. */
export interface FieldSample {
  /** A value as YAML, and what it comes to. */
  readonly valid: readonly [yaml: string, value: unknown];
  /** What else the file must say for the value to be allowed. */
  readonly besides?: string;
  /** Values of the right type that a rule forbids, a part of the message, and what the file says besides. */
  readonly invalid?: readonly InvalidSample[];
}

type InvalidSample = readonly [yaml: string, message: string, besides?: string];

export const minutes: FieldSample = { valid: ["1m30s", 90_000] };
export const path: FieldSample = { valid: ["/some/path", "/some/path"] };
export const word: FieldSample = { valid: ["word", "word"] };
export const on: FieldSample = { valid: ["true", true] };
export const off: FieldSample = { valid: ["false", false] };

export function count(...invalid: InvalidSample[]): FieldSample {
  return { valid: ["7", 7], invalid };
}

export function negative(label: string): InvalidSample {
  return ["-1", `invalid configuration: ${label} -1 must not be a negative number`];
}

export const port: InvalidSample = ["65536", "must be between"];

/** Loads a file with each sample. */
export function testFields(samples: Readonly<Partial<Record<FieldPath, FieldSample>>>): void {
  for (const [path, sample] of Object.entries(samples) as [FieldPath, FieldSample][]) testField(path, sample);
}

function testField(path: FieldPath, { valid, besides = "", invalid = [] }: FieldSample): void {
  test(`${path}: ${valid[0]}`, async () => {
    const { kubelet, origins } = configOf(await loadFile(`${written(path, valid[0])}\n${besides}`));
    assert.deepEqual(valueAt(kubelet, path), valid[1]);
    const origin = origins[path];
    // Line 3 follows apiVersion and kind; a value that a default replaced is not the file's.
    if (origin?.from === "file") assert.equal(origin.line, 3);
    else assert.deepEqual([path, origin?.from], ["podPidsLimit", "default"]);
  });

  test(`${path}: a value of another type is refused with its place`, async () => {
    const wrong = specOf(path).kind.wanted.includes("list") ? "{a: b}" : "[[1]]";
    const [problem] = problemsOf(await loadFile(`${written(path, wrong)}\n${besides}`));
    assert.ok(problem?.message.startsWith(path) && problem.message.includes(": wanted "), problem?.message);
    assert.match(problem?.place ?? "", /^\/etc\/kubelet\.yaml:3:\d+$/);
  });

  for (const [yaml, message, others = besides] of invalid) {
    test(`${path}: ${yaml} is refused`, async () => {
      const result = await loadFile(`${written(path, yaml)}\n${others}`);
      const [problem] = problemsOf(result);
      assert.ok(result.kind === "invalid" && result.message.includes(message), problem?.message);
    });
  }
}

/** One field with a value, as YAML, whatever structs it is in. */
function written(path: FieldPath, value: string): string {
  const [top = "", ...inner] = path.split(".");
  return `${top}: ${inner.reduceRight((text, name) => `{${name}: ${text}}`, value)}`;
}
