// The agent is killed again and again, at any moment; its pods must not notice, and nothing may be left in the end.
// NODELET_SEED repeats a run, NODELET_KILLS makes it longer; `npm run soak` kills 100 times.
import assert from "node:assert/strict";
import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ContainerState, PodSandboxState } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Container, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { PodMoments } from "../support/pod-moments.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { statusOf, TestNode } from "../support/test-node.ts";

const kills = Number(process.env["NODELET_KILLS"] ?? 10);
const seed = Number(process.env["NODELET_SEED"] ?? Date.now() % 1_000_000);

test(`the agent is killed ${kills} times among 10 pods (NODELET_SEED=${seed})`, { timeout: 280_000 }, async (t) => {
  t.diagnostic(`NODELET_SEED=${seed}`);
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  await using node = await TestNode.start();
  const { agent } = node;
  const trace = await node.trace("crashes");
  const run = (script: string) => ({ exec: { command: ["sh", "-c", script] } });
  const exec = (script: string) => ({ ...run(script), periodSeconds: 1 });

  /** Must run through it all: the same containers, always ready. */
  const steady: Readonly<Record<string, Partial<PodSpec>>> = {
    plain: { containers: [node.server("main")] },
    probed: { containers: [node.server("main", { readinessProbe: exec("true"), livenessProbe: exec("true") })] },
    started: { containers: [node.server("main", { startupProbe: exec("sleep 0.2"), readinessProbe: exec("true") })] },
    aided: {
      initContainers: [node.shell("setup", "true"), node.server("side", { restartPolicy: "Always" })],
      containers: [node.server("main"), node.server("second", { lifecycle: { postStart: run("true") } })],
    },
    unready: { containers: [node.server("main", { readinessProbe: exec("false") })] },
  };
  for (const [name, spec] of Object.entries(steady)) await agent.apply(name, spec);
  const ranOnce = node.shell("main", "echo ran once >> /trace/words", { volumeMounts: [trace.mount] });
  await agent.apply("done", { restartPolicy: "Never", volumes: [trace.volume], containers: [ranOnce] });
  const crashes = node.shell("main", "echo crashed >> /trace/words; exit 1", { volumeMounts: [trace.mount] });
  await agent.apply("crashing", { volumes: [trace.volume], containers: [crashes] });
  const before = new Map<string, Pod>();
  for (const name of Object.keys(steady)) {
    const isUp = (pod: Pod): boolean =>
      name === "unready" ? statusOf(pod, "main").state?.running !== undefined : isReady(pod);
    before.set(name, await agent.until(name, "up", isUp));
  }
  await agent.until("done", "over", ({ status }) => status?.phase === "Succeeded");

  /** Come, change and go all the time. */
  const restless = ["coming", "changing", "going"];
  const variants: readonly (() => Container)[] = [
    () => node.server("main"),
    () => node.server("main", { env: [{ name: "VERSION", value: "2" }] }),
    () => node.shell("main", "trap 'sleep 0.5; exit 0' TERM; sleep 1d & wait", { readinessProbe: exec("true") }),
    () => node.shell("main", "sleep 1; exit 1"),
    () => node.server("main", { lifecycle: { preStop: run("sleep 0.3"), postStart: run("sleep 0.3") } }),
  ];
  const stir = async (): Promise<void> => {
    const name = pick(restless);
    if (random() < 0.3) await agent.remove(name);
    else await agent.apply(name, { terminationGracePeriodSeconds: 2, containers: [pick(variants)()] });
  };

  let crashCount = 0;
  for (let kill = 1; kill <= kills; kill++) {
    await stir();
    await systemClock.sleep(random() ** 2 * 600, AbortSignal.timeout(5_000));
    await agent.kill9();
    if (random() < 0.3) await stir();
    await agent.launch();
    await assertNoDuplicates(node);
    for (const [name, was] of before) {
      const now = await agent.until(name, "known again", ({ status }) => status?.containerStatuses !== undefined);
      assert.deepEqual(identity(now), identity(was), `${name} after kill ${kill}`);
    }
    const { restartCount } = statusOf(await agent.until("crashing", "known", (pod) => hasStatus(pod)), "main");
    assert.ok(restartCount >= crashCount, `the restart count went from ${crashCount} to ${restartCount}`);
    crashCount = restartCount;
  }

  const settled = await agent.until(
    "crashing",
    "waiting",
    (pod) => statusOf(pod, "main").state?.waiting?.reason === "CrashLoopBackOff",
  );
  const words = await trace.words();
  const runs = words.filter((word) => word === "crashed").length;
  t.diagnostic(
    `the crashing container ran ${runs} times, its restart count is ${statusOf(settled, "main").restartCount}`,
  );
  // A start that a kill has cut off counts too, though the container may not have come to do anything.
  assert.ok(statusOf(settled, "main").restartCount >= runs - 1, "every run is counted");
  assert.equal(words.filter((word) => word === "ran once").length, 1, "what is over stays over");
  for (const name of [...Object.keys(steady), ...restless, "done", "crashing"]) await agent.remove(name);
  await assertNothingLeft(node);
});

test("the agent is killed the moment a pod is seen ready: it still is afterwards", async () => {
  await using node = await TestNode.start();
  const { agent } = node;
  const readinessProbe = { exec: { command: ["true"] }, periodSeconds: 5 };
  for (const name of ["one", "two", "three"]) {
    const moments = new PodMoments(agent);
    await agent.apply(name, { containers: [node.server("main", { readinessProbe })] });
    await moments.when(name, (pod) => pod !== undefined && isReady(pod));
    const seen = moments.last(name) as Pod;
    await agent.kill9();
    await moments[Symbol.asyncDispose]();
    await agent.launch();
    assert.deepEqual(identity(await agent.until(name, "known again", hasStatus)), identity(seen));
  }
});

function hasStatus({ status }: Pod): boolean {
  return status?.containerStatuses !== undefined;
}

/** What must stay the same: ids, counts, and since when the pod is ready or not. */
function identity(pod: Pod): unknown {
  const { initContainerStatuses = [], containerStatuses = [], conditions = [], startTime } = pod.status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  return {
    uid: pod.metadata?.uid,
    startTime,
    ready: [ready?.status, ready?.lastTransitionTime],
    containers: [...initContainerStatuses, ...containerStatuses].map(
      ({ name, containerID, restartCount, ready: isUp }) => [name, containerID, restartCount, isUp],
    ),
  };
}

async function assertNoDuplicates({ cri }: TestNode): Promise<void> {
  const { containers } = await cri.runtime.listContainers({ filter: undefined });
  const running = containers
    .filter(({ state }) => state === ContainerState.CONTAINER_RUNNING)
    .map(({ labels, metadata }) => `${labels["io.kubernetes.pod.name"]}/${metadata?.name}`);
  assert.deepEqual(running, [...new Set(running)], "no container runs twice");
  const { items } = await cri.runtime.listPodSandbox({ filter: undefined });
  const ready = items
    .filter(({ state }) => state === PodSandboxState.SANDBOX_READY)
    .map(({ metadata }) => metadata?.uid ?? "");
  assert.deepEqual(ready, [...new Set(ready)], "no pod has two sandboxes");
}

/** All agents of a machine share the directory that log collectors read; other tests run beside this one. */
async function linksInto(podLogsDir: string): Promise<readonly string[]> {
  const directory = "/var/log/containers";
  const found: string[] = [];
  for (const name of await readdir(directory).catch(() => [])) {
    const target = await readlink(join(directory, name)).catch(() => "");
    if (target.startsWith(`${podLogsDir}/`)) found.push(name);
  }
  return found;
}

async function assertNothingLeft(node: TestNode): Promise<void> {
  const { agent, cri, containerd } = node;
  const names = (directory: string): Promise<readonly string[]> => readdir(directory).catch(() => []);
  const left = async (): Promise<readonly string[]> => {
    const [pods, sandboxes, containers, directories, logs, links] = await Promise.all([
      agent.client.pods(AbortSignal.timeout(5_000)),
      cri.runtime.listPodSandbox({ filter: undefined }),
      cri.runtime.listContainers({ filter: undefined }),
      names(join(agent.rootDir, "pods")),
      names(containerd.layout.podLogsDir),
      linksInto(containerd.layout.podLogsDir),
    ]);
    return [
      ...pods.map(({ metadata }) => `pod ${metadata?.name}`),
      ...sandboxes.items.map(({ id }) => `sandbox ${id}`),
      ...containers.containers.map(({ id }) => `container ${id}`),
      ...directories.map((name) => `directory ${name}`),
      ...logs.map((name) => `log ${name}`),
      ...links.map((name) => `link ${name}`),
    ];
  };
  let last: readonly string[] = [];
  try {
    await eventually(
      async () => {
        last = await left();
        return last.length === 0;
      },
      "nothing left",
      30_000,
    );
  } catch (error) {
    throw new Error(`${String(error)}\n${last.join("\n")}\n${await agent.logTail()}`);
  }
}
