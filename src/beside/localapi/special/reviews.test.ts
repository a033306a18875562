import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attributes, Authorizer } from "../auth/authorize.ts";
import { selfAccessReviews } from "./reviews.ts";

for (const [what, fieldSelector, asked] of [
  ["as text", { rawSelector: "spec.nodeName=n" }, "spec.nodeName=n"],
  ["in parts", { requirements: [{ key: "spec.nodeName", operator: "In", values: ["n"] }] }, "spec.nodeName=n"],
  ["in parts that no text can say", { requirements: [{ key: "a", operator: "In", values: ["x", "y"] }] }, ""],
  ["not at all", undefined, ""],
] as const) {
  test(`a selector that is given ${what}`, async () => {
    let found: Attributes | undefined;
    const decide: Authorizer["decide"] = (_user, attributes) => {
      found = attributes;
      return { allowed: true, reason: "" };
    };
    const resourceAttributes = { verb: "watch", resource: "pods", ...(fieldSelector && { fieldSelector }) };
    const call = { user: { name: "u", groups: [] }, body: async () => ({ spec: { resourceAttributes } }) };
    await selfAccessReviews({ decide } as Authorizer)(call as never, {} as never);
    assert.equal(found?.type === "resource" ? found.fieldSelector : undefined, asked);
  });
}
