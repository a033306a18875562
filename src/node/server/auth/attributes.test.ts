import assert from "node:assert/strict";
import { test } from "node:test";
import { attributesOf } from "./attributes.ts";

for (const [path, fine, coarse = fine] of [
  ["/stats/summary", ["stats"]],
  ["/metrics", ["metrics"]],
  ["/metrics/cadvisor", ["metrics"]],
  ["/metricsx", ["proxy"]],
  ["/logs/", ["log"]],
  ["/logs/syslog", ["log"]],
  ["/checkpoint/a/b/c", ["checkpoint"]],
  ["/statusz", ["statusz"]],
  ["/flagz", ["configz"]],
  ["/pods", ["pods", "proxy"], ["proxy"]],
  ["/pods/", ["pods", "proxy"], ["proxy"]],
  ["/podsx", ["proxy"]],
  ["/runningpods/", ["pods", "proxy"], ["proxy"]],
  ["/healthz", ["healthz", "proxy"], ["proxy"]],
  ["/healthz/ping", ["healthz", "proxy"], ["proxy"]],
  ["/configz", ["configz", "proxy"], ["proxy"]],
  ["/exec/a/b/c", ["proxy"]],
  ["/attach/a/b/c", ["proxy"]],
  ["/run/a/b/c", ["proxy"]],
  ["/portForward/a/b", ["proxy"]],
  ["/containerLogs/a/b/c", ["proxy"]],
  ["/debug/pprof/profile", ["proxy"]],
  ["/debug/flags/v", ["proxy"]],
] as const) {
  test(`sub-resources of ${path}`, () => {
    assert.deepEqual(attributesOf("GET", path, "fine").subresources, fine);
    assert.deepEqual(attributesOf("GET", path, "coarse").subresources, coarse);
  });
}

for (const [method, verb] of [
  ["GET", "get"],
  ["POST", "create"],
  ["PUT", "update"],
  ["PATCH", "patch"],
  ["DELETE", "delete"],
  ["HEAD", ""],
  ["OPTIONS", ""],
  ["CONNECT", ""],
  ["constructor", ""],
] as const) {
  test(`the verb of ${method} is ${JSON.stringify(verb)}`, () =>
    assert.equal(attributesOf(method, "/pods", "fine").verb, verb));
}
