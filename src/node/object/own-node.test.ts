import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import type { WatchClient } from "../../connections/kube/index.ts";
import { silentLogger } from "../../ground/base/index.ts";
import type { Node } from "../../ground/model/index.ts";
import { OwnNode } from "./own-node.ts";

const nobody = (): never => assert.fail("nobody is asked");
const node = (resourceVersion: string, labels: Record<string, string>): Node => ({
  metadata: { name: "n1", uid: "u", resourceVersion, labels },
});

test("an answer to an older write does not take back what is known since", () => {
  const client = { list: nobody, openWatch: nobody } as unknown as WatchClient;
  const own = new OwnNode("n1", { client, clock: new FakeClock(), log: silentLogger, random: () => 0.5 });
  const told: unknown[] = [];
  own.onNode((found) => told.push(found?.metadata?.labels));
  own.answered(node("9", { disk: "ssd" }));
  own.answered(node("8", {}));
  own.answered(node("10", { disk: "hdd" }));
  assert.deepEqual(told, [{ disk: "ssd" }, { disk: "hdd" }]);
  assert.equal(own.node?.metadata?.resourceVersion, "10");
});
