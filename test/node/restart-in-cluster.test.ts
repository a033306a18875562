// An agent that is started again in a cluster leaves every pod as it is, whatever pods ask of their node, and also when
// the API server is away at that moment.
import assert from "node:assert/strict";
import { test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import type { Pod, PodSpec } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { clusterForTests } from "../support/cluster-for-tests.ts";
import { untilTold } from "../support/raw-runtime.ts";

const here = clusterForTests();

const terms = (term: object): Partial<PodSpec> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
});
const selecting: Partial<PodSpec> = { nodeSelector: { disk: "ssd" } };
const kinds: Readonly<Record<string, Partial<PodSpec>>> = {
  daemon: terms({ matchFields: [{ key: "metadata.name", operator: "In", values: ["test-node"] }] }),
  selecting,
  affine: terms({ matchExpressions: [{ key: "disk", operator: "In", values: ["ssd"] }] }),
  plain: {},
  host: { hostNetwork: true },
};
const staticName = "static-test-node";
const names = [...Object.keys(kinds), staticName];

const server = () => ({
  name: "main",
  image: here.containerd.images.busybox,
  command: [...untilTold],
  readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
});

async function label(disk: string | null): Promise<void> {
  const patch = { type: "strategic", body: { metadata: { labels: { disk } } } } as const;
  await here.cluster.admin.patch(resources.nodes, { name: "test-node" }, patch, AbortSignal.timeout(answerMs));
}

/** What must stay the same: containers, counts, and since when the pod is ready. */
function identity(pod: Pod | undefined): unknown {
  const { phase, containerStatuses = [], conditions = [] } = pod?.status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  return [
    phase,
    containerStatuses.map(({ containerID, restartCount, ready: isUp }) => [containerID, restartCount, isUp]),
    [ready?.status, ready?.lastTransitionTime],
  ];
}

async function identities(): Promise<unknown> {
  return Promise.all(names.map(async (name) => [name, identity(await here.cluster.local(name))]));
}

async function settled(): Promise<void> {
  for (const name of names) {
    await eventually(
      async () => isReady((await here.cluster.local(name)) ?? {}),
      `${name} is known as ready again`,
      60_000,
    );
  }
}

test("kills, stops, outages and lost labels: every container stays", { timeout: 280_000 }, async () => {
  const { agent, outage } = here.cluster;
  await eventually(
    async () =>
      label("ssd").then(
        () => true,
        () => undefined,
      ),
    "the Node is there",
    60_000,
  );
  for (const [name, spec] of Object.entries(kinds))
    await here.cluster.create(name, { ...spec, containers: [server()] });
  await agent.apply("static", { ...selecting, containers: [server()] });
  for (const name of names) await here.cluster.until(name, "ready", isReady);
  await using watched = await here.cluster.watch();
  const before = await identities();
  const same = async (when: string): Promise<void> => {
    await settled();
    assert.deepEqual(await identities(), before, when);
  };

  for (let round = 1; round <= 3; round++) {
    await agent.kill9();
    await agent.launch();
    await same(`after kill ${round}`);
  }
  assert.equal(await agent.stop(), 0);
  await agent.launch();
  await same("after a stop");

  const judgements = await here.cluster.judgementsWithoutApi();
  await outage.begin();
  await agent.kill9();
  await agent.launch();
  await same("without the API, static pods at once and those of the API from the list on disk");
  const isJudgedAgain = async (): Promise<boolean> => (await here.cluster.judgementsWithoutApi()) > judgements;
  await eventually(isJudgedAgain, "the pods are judged without the API", 60_000);
  await same("when the API has stayed away");
  await outage.end();
  await same("with the API again");

  await agent.kill9();
  await label(null);
  await agent.launch();
  await same("although a label is gone");
  await here.cluster.create("late", { ...selecting, containers: [server()] });
  const refused = await here.cluster.until("late", "refused", ({ status }) => status?.phase === "Failed");
  assert.equal(refused.status?.reason, "NodeAffinity");

  // What was deleted while the agent had no API goes when it has; what is new comes.
  await outage.begin();
  await agent.kill9();
  await here.cluster.delete("plain", 1);
  await here.cluster.create("new", { containers: [server()] });
  await agent.launch();
  await eventually(async () => isReady((await here.cluster.local("plain")) ?? {}), "the deleted one runs on", 60_000);
  await outage.end();
  await here.cluster.untilGone("plain");
  await here.cluster.until("new", "ready", isReady);

  for (const name of names) {
    const phases = new Set(watched.versions(name).map(({ status }) => status?.phase));
    assert.ok(!phases.has("Failed"), `${name}: ${[...phases].join(" ")}`);
    const flips = name === "plain" ? [] : watched.versions(name).filter((pod) => !isReady(pod));
    assert.equal(flips.length, 0, `${name} was always ready`);
  }
  for (const name of [...Object.keys(kinds), "late", "new"]) await here.cluster.delete(name, 0).catch(() => undefined);
  await agent.remove("static");
  await eventually(
    async () => (await agent.client.pods(AbortSignal.timeout(answerMs))).length === 0,
    "all are gone",
    60_000,
  );
});
