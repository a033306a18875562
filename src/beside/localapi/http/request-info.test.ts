import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { requestInfo } from "./request-info.ts";

describe("what a request is about", () => {
  for (const [method, path, expected] of [
    ["GET", "/api/v1/pods", "list /pods"],
    ["GET", "/api/v1/pods?watch=true", "watch /pods"],
    ["GET", "/api/v1/pods?watch=0", "list /pods"],
    ["GET", "/api/v1/namespaces/a/pods", "list a/pods"],
    ["GET", "/api/v1/namespaces/a/pods/b", "get a/pods b"],
    ["PUT", "/api/v1/namespaces/a/pods/b/status", "update a/pods b status"],
    ["POST", "/api/v1/namespaces/a/pods/b/eviction", "create a/pods b eviction"],
    ["GET", "/api/v1/namespaces/a", "get /namespaces a"],
    ["PATCH", "/api/v1/namespaces/a/status", "patch /namespaces a status"],
    ["PUT", "/api/v1/namespaces/a/finalize", "update /namespaces a finalize"],
    ["DELETE", "/api/v1/namespaces", "deletecollection /namespaces"],
    ["DELETE", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "delete a/leases.coordination.k8s.io b"],
    ["GET", "/api/v1/nodes/n/proxy/stats/summary", "get /nodes n proxy stats/summary"],
    ["GET", "/apis/apps/v1/deployments", "list /deployments.apps"],
    ["GET", "/apis/apps/v1", "path /apis/apps/v1"],
    ["GET", "/api/v1", "path /api/v1"],
    ["GET", "/version", "path /version"],
    ["GET", "/api/v1/namespaces/a/pods/with%2Fslash", "get a/pods with/slash"],
  ] as const) {
    test(`${method} ${path}`, () => {
      const info = requestInfo(method, new URL(path, "https://localhost"));
      if (info.type === "path") assert.equal(`path ${info.path}`, expected);
      else {
        const resource = info.group === "" ? info.resource : `${info.resource}.${info.group}`;
        const words = [info.verb, `${info.namespace}/${resource}`, info.name, info.subresource, info.rest];
        assert.equal(words.filter((word) => word !== "").join(" "), expected);
      }
    });
  }
});
