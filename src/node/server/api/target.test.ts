import assert from "node:assert/strict";
import { test } from "node:test";
import { parseTarget } from "./target.ts";

for (const [target, path, query = ""] of [
  ["/", "/"],
  ["/pods", "/pods"],
  ["/pods/", "/pods/"],
  ["/exec/ns/pod/c?command=a&command=b%20c", "/exec/ns/pod/c", "command=a&command=b+c"],
  ["/logs/a%20b", "/logs/a b"],
  ["http://node:10250/pods?x=1", "/pods", "x=1"],
] as const) {
  test(`target ${target} is the path ${path}`, () => {
    const parsed = parseTarget(target);
    assert.equal(parsed.type, "path");
    if (parsed.type !== "path") return;
    assert.equal(parsed.path, path);
    assert.equal(parsed.query.toString(), query);
  });
}

for (const [target, location] of [
  ["//pods", "/pods"],
  ["/pods/../exec/a/b/c", "/exec/a/b/c"],
  ["/pods/%2e%2e/exec", "/exec"],
  ["/pods/.%2E/exec?x=1&y", "/exec?x=1&y"],
  ["/./pods", "/pods"],
  ["/logs//x/", "/logs/x/"],
  ["/../../etc/passwd", "/etc/passwd"],
  ["/logs/..", "/"],
  ["/logs/./", "/logs/"],
  ["/a%20b//c", "/a%20b/c"],
] as const) {
  test(`target ${target} is sent to ${location}`, () =>
    assert.deepEqual(parseTarget(target), { type: "redirect", location }));
}

for (const target of ["*", "", "pods", "/pods/%", "/pods/%zz", "/logs/a%2fb", "/logs/..%2f..%2fetc", "/logs/a%00b"]) {
  test(`target ${JSON.stringify(target)} is refused`, () => assert.equal(parseTarget(target).type, "malformed"));
}
