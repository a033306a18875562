// The API server is away for half a minute while 20 pods start and stop: nothing is lost, nothing happens twice.
import assert from "node:assert/strict";
import { readdir, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Container, Pod } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { clusterForTests } from "../support/cluster-for-tests.ts";
import { marking, startsOf } from "../support/start-marks.ts";

/** Longer than any time after which the agent goes on by itself. */
const outageMs = 30_000;
const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
/** Ten are stopped and ten are started around the outage; what happens to the others is seen meanwhile. */
const leaving = names("leaving", 10);
const coming = names("coming", 10);

const here = clusterForTests();

const starts = (name: string): Promise<number> => startsOf(here.containerd, name);

async function create(name: string, script?: string, more: Partial<Container> = {}): Promise<void> {
  const { volumes, containers } = marking(here.containerd, name, script);
  const terminationGracePeriodSeconds = 5;
  const changed = containers.map((container) => ({ ...container, ...more }));
  await here.cluster.create(name, { volumes, containers: changed, terminationGracePeriodSeconds });
}

const restarts = (pod: Pod | undefined): number => pod?.status?.containerStatuses?.[0]?.restartCount ?? 0;

test("half a minute without the API during 20 starts and stops", { timeout: 240_000 }, async () => {
  await create("crashing", "sleep 3; exit 4");
  const flag = join(here.containerd.stateDir, "healthy");
  await writeFile(flag, "");
  await create("probed", undefined, {
    readinessProbe: { exec: { command: ["test", "-e", "/marks/healthy"] }, periodSeconds: 1, failureThreshold: 1 },
  });
  for (const name of leaving) await create(name);
  for (const name of ["probed", ...leaving]) await here.cluster.until(name, "ready", isReady);
  await using watched = await here.cluster.watch();

  // Half of the starts and stops are under way when the API goes, the others are asked for while it is away.
  const [nowLeaving, laterLeaving] = [leaving.slice(0, 5), leaving.slice(5)];
  const [nowComing, laterComing] = [coming.slice(0, 5), coming.slice(5)];
  await Promise.all([...nowLeaving.map((name) => here.cluster.delete(name)), ...nowComing.map((name) => create(name))]);
  const began = systemClock.monotonic();
  await here.cluster.outage.begin();
  await Promise.all([
    ...laterLeaving.map((name) => here.cluster.delete(name)),
    ...laterComing.map((name) => create(name)),
  ]);

  const restartsBefore = restarts(await here.cluster.local("crashing"));
  await eventually(
    async () => restarts(await here.cluster.local("crashing")) > restartsBefore,
    "a container that ended is started again without the API",
    50_000,
  );
  await unlink(flag);
  await eventually(
    async () => !isReady((await here.cluster.local("probed")) as Pod),
    "a probe takes a pod out of service without the API",
    30_000,
  );
  const known = await here.cluster.pod("probed");
  assert.ok(known !== undefined && isReady(known), "the API can't know yet");
  await systemClock.sleep(Math.max(0, outageMs - (systemClock.monotonic() - began)), AbortSignal.timeout(outageMs * 2));
  for (const name of laterLeaving) assert.equal(await starts(name), 1, `${name} just runs on`);
  for (const name of laterComing) assert.equal(await starts(name), 0, `${name} can't be known yet`);
  await here.cluster.outage.end();

  for (const name of coming) await here.cluster.until(name, "ready", isReady);
  for (const name of leaving) await here.cluster.untilGone(name);
  await here.cluster.until("probed", "not ready any more", (pod) => !isReady(pod));
  const reported = await here.cluster.until("crashing", "restarts reported", (pod) => restarts(pod) > restartsBefore);
  assert.ok(restarts(reported) < (await starts("crashing")) + 1);

  for (const name of [...leaving, ...coming]) assert.equal(await starts(name), 1, `${name} was started once`);
  for (const name of leaving) {
    const end = watched.lastSeen(name)?.status;
    assert.equal(end?.phase, "Succeeded", `${name}: ${JSON.stringify(end)}`);
    const phases = watched.versions(name).map(({ status }) => status?.phase);
    assert.deepEqual(phases, phases.toSorted(), `${name} did not come back: ${phases.join(" ")}`);
  }
  const directories = await readdir(join(here.cluster.agent.rootDir, "pods"));
  await eventually(
    async () => (await readdir(join(here.cluster.agent.rootDir, "pods"))).length === coming.length + 2,
    `only the pods that are there have directories (${directories.length})`,
    30_000,
  );
  const { items } = await here.cluster.admin.list(
    resources.pods,
    { namespace: "default" },
    {},
    AbortSignal.timeout(answerMs),
  );
  assert.deepEqual(
    items.map(({ metadata }) => metadata?.name).toSorted(),
    [...coming, "crashing", "probed"].toSorted(),
  );
  for (const { metadata } of items) await here.cluster.delete(metadata?.name ?? "", 0);
});
