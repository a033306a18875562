import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SourceEars, temporaryDirectory } from "../../../test/support/pod-source.ts";
import { richManifest, spoiltManifests } from "../../../test/support/spoilt-manifests.ts";
import { TaskScope } from "../../ground/base/index.ts";
import { isError } from "../../ground/model/index.ts";
import { FileSource } from "./file-source.ts";

/** Numbers that look random and are the same in every run. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Damages the text itself: cuts, doubles, swaps or overwrites a piece of it. */
function damage(text: string, random: (below: number) => number): string {
  const at = random(text.length);
  const length = 1 + random(20);
  const piece = text.slice(at, at + length);
  const noise = ["\t", "{", "]", ": ", "\u0000", "&x ", "*y", "!!binary ", "'", "%", "- ", "\ud800"][random(12)] ?? "";
  switch (random(5)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + text.slice(at + length);
    case 2:
      return text.slice(0, at) + piece + text.slice(at);
    case 3:
      return text.slice(0, at) + noise + text.slice(at);
    default:
      return text.slice(0, at) + noise + text.slice(at + length);
  }
}

test("200 spoilt manifests among good ones: the good pods go on, each bad one is named with field and reason", async () => {
  await using temporary = await temporaryDirectory();
  const dir = join(temporary.path, "manifests");
  mkdirSync(dir);
  const good = Array.from({ length: 10 }, (_, index) => `good-${index}`);
  for (const name of good) writeFileSync(join(dir, `${name}.json`), JSON.stringify(richManifest(name), undefined, 2));
  const ears = new SourceEars();
  await using scope = new TaskScope();
  const settings = {
    path: dir,
    checkFrequencyMs: 3_600_000,
    lastGoodDirectory: join(temporary.path, "saved"),
    nodeName: "n",
    references: { prevent: true, allow: [] },
  } as const;
  scope.spawn("file source", (signal) => new FileSource(settings, ears.ports).run(signal));
  await ears.until("the good pods are there", () => ears.pods?.length === good.length);

  const random = pseudoRandom(20_260_101);
  const wantedField = new Map<string, string>();
  const damaged: string[] = [];
  for (const { name, text, field } of spoiltManifests(120)) {
    const file = join(dir, `${name}.json`);
    wantedField.set(file, field);
    writeFileSync(file, text);
  }
  for (let index = 0; index < 80; index++) {
    const file = join(dir, `damaged-${index}`);
    damaged.push(file);
    writeFileSync(file, damage(JSON.stringify(richManifest(`damaged-${index}`), undefined, 1), random));
  }
  // The last by name of all files: when its pod is there, everything before it has been read.
  writeFileSync(join(dir, "zz-last.json"), JSON.stringify(richManifest("last")));
  await ears.until("the last pod is there", () => ears.pods?.includes("last-n") === true);
  await ears.until("every spoilt file is reported", () =>
    [...wantedField.keys()].every((file) => ears.problemsOf(file)),
  );

  for (const [file, field] of wantedField) {
    const problems = ears.reports.findLast((report) => report.file === file)?.problems.filter(isError) ?? [];
    const fields = problems.map((problem) => problem.field);
    assert.ok(fields.includes(field), `${file}: ${field} is not named, but ${fields.join(", ")}`);
    for (const problem of problems) assert.notEqual(problem.message, "", file);
  }
  let refused = 0;
  for (const file of damaged) {
    const errors = ears.reports.findLast((report) => report.file === file)?.problems.filter(isError) ?? [];
    if (errors.length > 0) refused++;
    assert.ok(
      errors.every(({ message }) => message.length > 5),
      file,
    );
  }
  // Some damage is harmless, such as a doubled space. Every file is either refused with a reason or has its pod.
  assert.equal(ears.pods?.length, good.length + 1 + damaged.length - refused);
  assert.ok(refused > 40, `${refused} of ${damaged.length} damaged files were refused`);
  for (const pods of ears.deliveries.slice(1)) {
    const names = new Set(pods.map(({ metadata }) => metadata.name));
    for (const name of good) assert.ok(names.has(`${name}-n`), `${name} was lost in a delivery`);
  }
  assert.equal(scope.signal.aborted, false, String(scope.signal.reason));
});
