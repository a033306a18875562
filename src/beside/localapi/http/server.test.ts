import assert from "node:assert/strict";
import { test } from "node:test";
import { requestUrl } from "./server.ts";

for (const [target, path] of [
  ["/api/v1/pods?watch=1", "/api/v1/pods"],
  ["//eviction-.%25b%C3%A9/x", "//eviction-.%25b%C3%A9/x"],
  ["//user:word@host:70000/", "//user:word@host:70000/"],
  ["///", "///"],
  ["*", "/*"],
  ["", "/"],
] as const) {
  test(`${JSON.stringify(target)} is a path of this server`, () => {
    const url = requestUrl(target);
    assert.equal(url.host, "localhost");
    assert.equal(url.pathname, path);
  });
}
