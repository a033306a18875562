import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store } from "../store/store.ts";
import { NodeAuthorizer } from "./node-authorizer.ts";

test("a node is refused what no table lists, whatever every object has by that name", () => {
  const authorizer = new NodeAuthorizer({} as Store);
  const user = { name: "system:node:n1", groups: ["system:nodes"] };
  for (const resource of ["constructor", "toString", "__proto__", "widgets"]) {
    const place = { group: "", resource, subresource: "", namespace: "", name: "", fieldSelector: "" };
    const decision = authorizer.decide(user, { type: "resource", verb: "get", ...place });
    assert.deepEqual(decision, { allowed: false, reason: "" }, resource);
  }
});
