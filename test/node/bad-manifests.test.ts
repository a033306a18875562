// Bad manifests among good ones: the good pods go on, every bad one is named, and no running pod dies of an edit.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Pod } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { spoiltManifests } from "../support/spoilt-manifests.ts";
import { idOf, statusOf, TestNode } from "../support/test-node.ts";
import { soon } from "../support/until.ts";

test("200 bad manifests among good ones, and good ones that turn bad", async (t) => {
  await using node = await TestNode.start();
  const { agent } = node;
  const names = ["one", "two", "three", "four", "five"];
  const ids = new Map<string, string>();
  for (const name of names) await agent.apply(name, { containers: [node.server("main")] });
  for (const name of names) ids.set(name, idOf(statusOf(await agent.until(name, "ready", isReady), "main")));

  const spoilt = spoiltManifests(200);
  for (const { name, text } of spoilt) await agent.applyText(name, text);
  await agent.apply("zz-last", { containers: [node.server("main")] });
  await agent.until("zz-last", "ready", isReady);
  await eventually(
    async () => {
      const complaints = await node.logged('"Invalid manifest"');
      return spoilt.every(({ name, field }) => {
        const file = `file="${join(agent.manifests, `${name}.yaml`)}"`;
        return complaints.some((line) => line.includes(file) && line.includes(`field="${field}"`));
      });
    },
    "every bad manifest is named with its file and field",
    30_000,
  );
  for (const line of await node.logged('"Invalid manifest"')) assert.match(line, /problem="[^"]{5,}/);
  const { healthy, report } = await agent.client.health(soon());
  assert.ok(healthy, "bad input is no illness of the agent");
  for (const { name } of spoilt) assert.ok(report.includes(`${name}.yaml`), `${name} is missing in the health report`);
  const pods = await agent.client.pods(soon());
  assert.deepEqual(
    pods.map(({ metadata }) => metadata?.name).sort(),
    [...names, "zz-last"].map((name) => `${name}-test-node`).sort(),
  );

  const same = async (name: string): Promise<void> => {
    const pod = (await agent.pod(name)) as Pod;
    assert.equal(idOf(statusOf(pod, "main")), ids.get(name), `${name} runs on`);
    assert.ok(isReady(pod));
  };
  await agent.applyText(
    "one",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec: {containers: [{name: main}]}\n",
  );
  await agent.applyText("two", "{ this is : [ no manifest");
  await agent.applyText("three", "");
  await node.untilLogged("FailedValidation", "one-test-node_default", "keeping its last good version");
  await node.untilLogged('"Invalid manifest"', "/two.yaml");
  await node.untilLogged('"Invalid manifest"', "/three.yaml");
  for (const name of names) await same(name);

  await agent.kill9();
  await agent.launch();
  for (const name of names)
    await agent.until(name, "known again", ({ status }) => status?.containerStatuses !== undefined);
  for (const name of names) await same(name);
  for (const name of names) await agent.apply(name, { containers: [node.server("main")] });
  for (const { name } of spoilt) await agent.remove(name);
  await eventually(
    async () => !(await agent.client.health(soon())).report.includes(".yaml"),
    "no complaint is left",
    30_000,
  );
  for (const name of names) await same(name);
  t.diagnostic(`${spoilt.length} bad manifests`);
});
