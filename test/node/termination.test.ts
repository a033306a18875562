// How pods end: on request, by edits of their manifest, by their deadline, at any moment of their life.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Container, Pod } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { isOver, statusOf, TestNode, type Trace } from "../support/test-node.ts";

/** Ready is who has set its trap: a signal before that ends a program at once. */
const isUp = { exec: { command: ["test", "-e", "/up"] }, periodSeconds: 1 };

describe("termination", { concurrency: 6 }, () => {
  let node: TestNode;
  let silentRegistry: Server;
  let hangingImage = "";
  before(async () => {
    node = await TestNode.start();
    silentRegistry = createServer(() => {}).listen(0, "127.0.0.1");
    await once(silentRegistry, "listening");
    const address = silentRegistry.address();
    if (address !== null && typeof address === "object") hangingImage = `127.0.0.1:${address.port}/never/answers:1`;
  });
  after(async () => {
    silentRegistry?.close();
    await node?.[Symbol.asyncDispose]();
  });

  /** Writes down its start, and what it does when told to end. */
  const tracing = (trace: Trace, word: string, ending: string, more: Partial<Container> = {}): Container =>
    node.shell("main", `trap '${ending}' TERM; echo ${word} starts >> /trace/words; touch /up; sleep 1d & wait; wait`, {
      volumeMounts: [trace.mount],
      readinessProbe: isUp,
      ...more,
    });
  const says = (word: string): string => `echo ${word} >> /trace/words`;
  const nothingLeft = async (pod: Pod | undefined): Promise<void> => {
    const uid = pod?.metadata?.uid ?? "";
    const sandboxes = await node.cri.runtime.listPodSandbox({ filter: undefined });
    assert.deepEqual(
      sandboxes.items.filter(({ metadata }) => metadata?.uid === uid).map(({ id }) => id),
      [],
    );
  };

  test("a container that cleans up has all of its grace for it", async () => {
    const trace = await node.trace("graceful");
    const ending = `${says("told to end")}; sleep 2.6; ${says("cleaned up")}; exit 0`;
    // A hook of a moment must cost no more than that moment.
    const lifecycle = { preStop: { exec: { command: ["true"] } } };
    await node.agent.apply("graceful", {
      terminationGracePeriodSeconds: 3,
      volumes: [trace.volume],
      containers: [tracing(trace, "main", ending, { lifecycle })],
    });
    const pod = await node.agent.until("graceful", "ready", isReady);
    await node.agent.remove("graceful");
    await node.agent.untilGone("graceful");
    assert.deepEqual(await trace.words(), ["main starts", "told to end", "cleaned up"]);
    await nothingLeft(pod);
  });

  test("a container that will not hear is killed when its grace is over, not before", async () => {
    const deaf = node.shell("main", "trap '' TERM; touch /up; while true; do sleep 1; done", {
      readinessProbe: isUp,
    });
    await node.agent.apply("deaf", { terminationGracePeriodSeconds: 3, containers: [deaf] });
    const pod = await node.agent.until("deaf", "ready", isReady);
    const asked = systemClock.monotonic();
    await node.agent.remove("deaf");
    await node.agent.untilGone("deaf");
    assert.ok(systemClock.monotonic() - asked >= 3_000);
    await nothingLeft(pod);
  });

  test("an edited manifest: the old pod ends to the last, then the new one starts under the same name", async () => {
    const trace = await node.trace("edited");
    const spec = (word: string) => ({
      terminationGracePeriodSeconds: 10,
      volumes: [trace.volume],
      containers: [tracing(trace, word, `${says(`${word} ends`)}; sleep 1; ${says(`${word} ended`)}; exit 0`)],
    });
    await node.agent.apply("edited", spec("old"));
    const old = await node.agent.until("edited", "ready", isReady);
    await node.agent.apply("edited", spec("new"));
    const next = await node.agent.until(
      "edited",
      "the new one ready",
      (pod) => pod.metadata?.uid !== old.metadata?.uid && isReady(pod),
    );
    assert.deepEqual(await trace.words(), ["old starts", "old ends", "old ended", "new starts"]);
    assert.equal(next.metadata?.name, "edited-test-node");
    const pods = await node.agent.client.pods(AbortSignal.timeout(answerMs));
    assert.equal(pods.filter(({ metadata }) => metadata?.name === "edited-test-node").length, 1);
    await nothingLeft(old);
  });

  test("a manifest edited many times in a row: only the last version stays, never two at once", async () => {
    const trace = await node.trace("hasty");
    const spec = (word: string) => ({
      volumes: [trace.volume],
      containers: [tracing(trace, word, `${says(`${word} ends`)}; exit 0`)],
    });
    const versions = ["a", "b", "c", "d", "e"];
    for (const word of versions) {
      await node.agent.apply("hasty", spec(word));
      await systemClock.sleep(150, AbortSignal.timeout(answerMs));
    }
    await eventually(async () => (await trace.words()).includes("e starts"), "the last version runs", 60_000);
    const words = await trace.words();
    assert.equal(words.at(-1), "e starts");
    let alive = 0;
    for (const word of words) {
      alive += word.endsWith("starts") ? 1 : -1;
      assert.ok(alive <= 1, `two at once: ${words.join(", ")}`);
    }
    await node.agent.until("hasty", "ready", isReady);
  });

  test("removed and put back at once: ends, and starts again under the same uid", async () => {
    const trace = await node.trace("back");
    const spec = {
      terminationGracePeriodSeconds: 10,
      volumes: [trace.volume],
      containers: [tracing(trace, "it", `${says("it ends")}; sleep 1; ${says("it ended")}; exit 0`)],
    };
    await node.agent.apply("back", spec);
    const first = await node.agent.until("back", "ready", isReady);
    await node.agent.remove("back");
    await eventually(async () => (await trace.words()).includes("it ends"), "it is told to end", 60_000);
    await node.agent.apply("back", spec);
    await eventually(async () => (await trace.words()).length === 4, "it starts again", 30_000);
    const second = await node.agent.until("back", "ready", isReady);
    assert.equal(second.metadata?.uid, first.metadata?.uid);
    assert.deepEqual(await trace.words(), ["it starts", "it ends", "it ended", "it starts"]);
    assert.equal(statusOf(second, "main").restartCount, 0);
  });

  for (const { title, name, main, isSo } of [
    {
      title: "its image is being pulled",
      name: "pulling",
      main: () => ({ name: "main", image: hangingImage }),
      isSo: async () => (await node.logged("pulling-test-node", 'reason="Pulling"')).length > 0,
    },
    {
      title: "a hook of it hangs",
      name: "hooking",
      main: () => node.server("main", { lifecycle: { postStart: { exec: { command: ["sleep", "600"] } } } }),
      isSo: async () => (await node.running()).includes("hooking-test-node/main"),
    },
    {
      title: "it waits for its next start",
      name: "crashing",
      main: () => node.shell("main", "exit 1"),
      isSo: async ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.waiting?.reason === "CrashLoopBackOff",
    },
  ]) {
    test(`removed while ${title}: goes without a trace`, async () => {
      await node.agent.apply(name, { containers: [main()] });
      const pod = await node.agent.until(name, "its sandbox is there", (seen) => seen.status?.podIP !== undefined);
      await eventually(async () => await isSo((await node.agent.pod(name)) ?? {}), title, 60_000);
      await node.agent.remove(name);
      await node.agent.untilGone(name, 45_000);
      await nothingLeft(pod);
    });
  }

  test("removed while an init container runs: that is stopped, nothing else starts", async () => {
    const trace = await node.trace("initialising");
    const mounts = { volumeMounts: [trace.mount] };
    await node.agent.apply("initialising", {
      terminationGracePeriodSeconds: 10,
      volumes: [trace.volume],
      initContainers: [
        node.shell("init", `trap '${says("init ends")}; exit 0' TERM; ${says("init starts")}; sleep 1d & wait`, mounts),
      ],
      containers: [node.shell("main", says("main starts"), mounts)],
    });
    await node.agent.until("initialising", "it runs", (pod) => statusOf(pod, "init").state?.running !== undefined);
    await eventually(async () => (await trace.words()).length > 0, "it has begun", 60_000);
    await node.agent.remove("initialising");
    await node.agent.untilGone("initialising");
    assert.deepEqual(await trace.words(), ["init starts", "init ends"]);
  });

  for (const { title, name, main } of [
    { title: "while it runs", name: "deadline-running", main: () => node.server("main") },
    { title: "while it waits for its next start", name: "deadline-crash", main: () => node.shell("main", "exit 1") },
    {
      title: "while its image is being pulled",
      name: "deadline-pull",
      main: () => ({ name: "main", image: hangingImage }),
    },
  ]) {
    test(`the deadline passes ${title}: Failed, and nothing of it runs`, async () => {
      await node.agent.apply(name, { activeDeadlineSeconds: 3, containers: [main()] });
      const pod = await node.agent.until(name, "over", isOver, 60_000);
      assert.equal(pod.status?.phase, "Failed");
      assert.equal(pod.status?.reason, "DeadlineExceeded");
      assert.equal(pod.status?.message, "Pod was active on the node longer than the specified deadline");
      const startedAt = Date.parse(pod.status?.startTime ?? "");
      assert.ok(Date.now() - startedAt >= 3_000, "not before its time");
      assert.deepEqual(
        (await node.running()).filter((container) => container.startsWith(name)),
        [],
      );
    });
  }
});

test("what happens to manifests while the agent is away is done when it is back", async () => {
  await using node = await TestNode.start();
  const trace = await node.trace("away");
  const tracing = (word: string) => ({
    terminationGracePeriodSeconds: 10,
    volumes: [trace.volume],
    containers: [
      node.shell(
        "main",
        `trap 'sleep 1; echo ${word} ended >> /trace/words; exit 0' TERM; echo ${word} starts >> /trace/words; touch /up; sleep 1d & wait`,
        { volumeMounts: [trace.mount], readinessProbe: isUp },
      ),
    ],
  });
  await node.agent.apply("removed", { containers: [node.server("main")] });
  await node.agent.apply("edited", tracing("old"));
  await node.agent.apply("kept", { containers: [node.server("main")] });
  for (const name of ["removed", "edited", "kept"]) await node.agent.until(name, "ready", isReady);
  const kept = await node.agent.pod("kept");
  assert.equal(await node.agent.stop(), 0);
  assert.equal((await node.running()).length, 3, "stopping the agent stops no pod");
  await node.agent.remove("removed");
  await node.agent.apply("edited", tracing("new"));
  await node.agent.apply("added", { containers: [node.server("main")] });
  await node.agent.launch();
  for (const name of ["added", "kept", "edited"]) await node.agent.until(name, "ready", isReady);
  await eventually(async () => (await node.running()).length === 3, "only what is wanted runs", 30_000);
  assert.deepEqual(await node.running(), ["added-test-node/main", "edited-test-node/main", "kept-test-node/main"]);
  assert.equal(
    statusOf((await node.agent.pod("kept")) as Pod, "main").containerID,
    statusOf(kept as Pod, "main").containerID,
  );
  assert.deepEqual(await trace.words(), ["old starts", "old ended", "new starts"]);
});
