import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pods } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import { StatusError } from "../status-error.ts";
import { matchFields, parseFieldRequirements } from "./field-selector.ts";
import { parseLabelSelector } from "./label-selector.ts";

const labelled = (labels: Record<string, string>): ApiObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { labels },
});

describe("label selectors", () => {
  const object = labelled({ app: "web", tier: "front", "example.com/size": "10" });
  for (const [selector, matches] of [
    ["", true],
    ["app=web", true],
    ["app==web", true],
    ["app = web", true],
    ["app=db", false],
    ["app!=db", true],
    ["absent!=x", true],
    ["app", true],
    ["absent", false],
    ["!absent", true],
    ["! app", false],
    ["app in (web, db)", true],
    ["app in (db)", false],
    ["absent in (db)", false],
    ["app notin (db,cache)", true],
    ["absent notin (x)", true],
    ["app=web,tier in (front,back),!absent", true],
    ["app=web,tier=back", false],
    ["example.com/size>9", true],
    ["example.com/size<9", false],
    ["app>1", false],
    ["absent=", false],
  ] as const) {
    test(`"${selector}"`, () => assert.equal(parseLabelSelector(selector)(object), matches));
  }
  for (const selector of ["app=(", "a b", "app>x", "=", "app in web"]) {
    test(`"${selector}" is refused`, () => assert.throws(() => parseLabelSelector(selector), StatusError));
  }
});

describe("field selectors", () => {
  const pod: ApiObject = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default" },
    spec: { nodeName: "n1" },
    status: { phase: "Running" },
  };
  for (const [selector, matches] of [
    ["metadata.name=web", true],
    ["metadata.name!=web", false],
    ["spec.nodeName==n1,status.phase!=Failed", true],
    ["spec.nodeName=", false],
    ["status.podIP=", true],
    ["metadata.namespace=other", false],
  ] as const) {
    test(`"${selector}"`, () => assert.equal(matchFields(pods, selector)(pod), matches));
  }
  test("escapes", () => {
    assert.deepEqual(parseFieldRequirements("a=b\\,c\\=d,e!=f"), [
      { field: "a", operator: "=", value: "b,c=d" },
      { field: "e", operator: "!=", value: "f" },
    ]);
  });
  test("a field that can't be selected is refused", () => {
    assert.throws(() => matchFields(pods, "spec.hostname=x"), /field label not supported: spec\.hostname/);
  });
});
