import assert from "node:assert/strict";
import { test } from "node:test";
import { PodCidrs } from "./pod-cidrs.ts";

const never = new AbortController().signal;

test("the runtime is told of the pods' networks once, of others again, and after a failure once more", async () => {
  const told: (string | undefined)[] = [];
  let isAway = false;
  const cidrs = new PodCidrs({
    updateRuntimeConfig: async ({ runtimeConfig }) => {
      if (isAway) throw new Error("away");
      told.push(runtimeConfig?.networkConfig?.podCidr);
      return {};
    },
  });
  assert.equal(await cidrs.tell(["10.0.0.0/24"], never), true);
  assert.equal(await cidrs.tell(["10.0.0.0/24"], never), false);
  isAway = true;
  await assert.rejects(cidrs.tell(["10.0.0.0/24", "fd00::/64"], never), /away/);
  isAway = false;
  assert.equal(await cidrs.tell(["10.0.0.0/24", "fd00::/64"], never), true);
  assert.deepEqual(told, ["10.0.0.0/24", "10.0.0.0/24,fd00::/64"]);
});
