import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isFieldPath, specOf } from "./fields/fields.ts";
import { inEffect } from "./in-effect.ts";

const src = fileURLToPath(new URL("../..", import.meta.url));

/** The code of the parts and rules that act on settings; not of config, which only reads them, nor of the commands. */
function codeOfParts(): string {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" });
  const own = files.filter(
    (file) =>
      file.endsWith(".ts") &&
      !file.endsWith(".test.ts") &&
      !/^(?:ground\/config(?!\/(?:log|eviction)-settings)|beside\/cli|ground\/model(?!\/node-capacity))\//.test(file),
  );
  return own.map((file) => readFileSync(join(src, file), "utf8")).join("\n");
}

test("what is said to be in effect is at least mentioned by a part", () => {
  const code = codeOfParts();
  // These are acted on while the configuration is loaded, which refuses the start.
  const byLoading = new Set(["featureGates", "failCgroupV1", "mergeDefaultEvictionSettings"]);
  // The kernel is always asked to tell, whatever this says: nothing is had by not knowing.
  const alwaysOn = new Set(["kernelMemcgNotification"]);
  const claimed = Object.entries(inEffect).filter(
    ([name, effect]) => effect === "yes" && isFieldPath(name) && !byLoading.has(name) && !alwaysOn.has(name),
  );
  const unproven = claimed.filter(([path]) => {
    const name = isFieldPath(path) ? `${path.split(".").at(-1)}${specOf(path).kind.unit ?? ""}` : path;
    // Some are read through a function of config that is named after them: qosReservedPercent.
    return !new RegExp(`\\b${name}(?:\\b|[A-Z])`).test(code);
  });
  assert.deepEqual(
    unproven.map(([path]) => path),
    [],
  );
  assert.ok(claimed.length > 0);
});
