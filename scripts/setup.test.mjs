import assert from "node:assert/strict";
import { test } from "node:test";
import { missingPackages, packagesMatch } from "./setup.mjs";

const lock = {
  packages: {
    "": { name: "nodelet", version: "1.0.0" },
    "node_modules/a": { version: "1.2.3" },
    "node_modules/b-linux": { version: "2.0.0", optional: true },
  },
};

for (const { title, packages, match } of [
  {
    title: "the same",
    packages: { "node_modules/a": { version: "1.2.3" }, "node_modules/b-linux": { version: "2.0.0" } },
    match: true,
  },
  { title: "an absent optional package", packages: { "node_modules/a": { version: "1.2.3" } }, match: true },
  {
    title: "an older optional package",
    packages: { "node_modules/a": { version: "1.2.3" }, "node_modules/b-linux": { version: "1.0.0" } },
    match: false,
  },
  { title: "another version", packages: { "node_modules/a": { version: "1.2.2" } }, match: false },
  { title: "an absent package", packages: {}, match: false },
]) {
  test(`npm packages: ${title} ${match ? "matches" : "does not match"} the lock file`, () =>
    assert.equal(packagesMatch(lock, { packages }), match));
}

test("where the tests run, nothing is missing", () => assert.deepEqual(missingPackages("test"), []));
