// Restart policies, the wait between restarts and what is left of a container's end, as a user sees them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PodSpec } from "../../src/ground/model/index.ts";
import { conditionOf, isOver, statusOf, TestNode } from "../support/test-node.ts";

describe("restarts", { concurrency: 8 }, () => {
  let node: TestNode;
  before(async () => {
    node = await TestNode.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const policies = ["Always", "OnFailure", "Never"] as const;
  for (const { policy, code, ends } of [
    { policy: "Always", code: 0, ends: "restarted" },
    { policy: "Always", code: 1, ends: "restarted" },
    { policy: "OnFailure", code: 0, ends: "Succeeded" },
    { policy: "OnFailure", code: 1, ends: "restarted" },
    { policy: "Never", code: 0, ends: "Succeeded" },
    { policy: "Never", code: 7, ends: "Failed" },
  ] as const satisfies readonly { policy: (typeof policies)[number]; code: number; ends: string }[]) {
    test(`${policy}, exit ${code}: ${ends}`, async () => {
      const name = `policy-${policy.toLowerCase()}-${code}`;
      const spec: Partial<PodSpec> = { restartPolicy: policy, containers: [node.shell("main", `exit ${code}`)] };
      await node.agent.apply(name, spec);
      if (ends === "restarted") {
        const pod = await node.agent.until(name, "restarted", (seen) => statusOf(seen, "main").restartCount >= 1);
        assert.equal(pod.status?.phase, "Running");
        assert.equal(statusOf(pod, "main").lastState?.terminated?.exitCode, code);
      } else {
        const { status } = await node.agent.until(name, "over", isOver);
        assert.equal(status?.phase, ends);
        const [main] = status?.containerStatuses ?? [];
        assert.equal(main?.state?.terminated?.exitCode, code);
        assert.equal(main?.state?.terminated?.reason, code === 0 ? "Completed" : "Error");
        assert.equal(main?.restartCount, 0);
      }
      await node.agent.remove(name);
      await node.agent.untilGone(name);
    });
  }

  test("two containers: only the one that failed starts again; with Never one failure makes the pod Failed", async () => {
    const containers = [node.shell("good", "exit 0"), node.shell("bad", "sleep 1; exit 3")];
    await node.agent.apply("two-onfailure", { restartPolicy: "OnFailure", containers });
    await node.agent.apply("two-never", { restartPolicy: "Never", containers });
    const retried = await node.agent.until(
      "two-onfailure",
      "bad restarted",
      (pod) => statusOf(pod, "bad").restartCount > 0,
    );
    assert.equal(statusOf(retried, "good").restartCount, 0);
    assert.equal(statusOf(retried, "good").state?.terminated?.reason, "Completed");
    assert.equal(retried.status?.phase, "Running");
    const over = await node.agent.until("two-never", "over", isOver);
    assert.equal(over.status?.phase, "Failed");
    assert.equal(statusOf(over, "good").state?.terminated?.exitCode, 0);
    assert.equal(conditionOf(over, "Ready"), "False");
  });

  test("a crashing container: the first restart at once, the second not before 10 s, said so meanwhile", async () => {
    await node.agent.apply("crash", { containers: [node.shell("main", "sleep 3; exit 4")] });
    const first = await node.agent.until("crash", "first restart", (pod) => {
      const { restartCount, state } = statusOf(pod, "main");
      return restartCount === 1 && state?.running !== undefined;
    });
    const { state: restarted, lastState: original } = statusOf(first, "main");
    const startedAt = Date.parse(restarted?.running?.startedAt ?? "");
    const waitedMs = startedAt - Date.parse(original?.terminated?.finishedAt ?? "");
    assert.ok(waitedMs < 10_000, `the first restart came after ${waitedMs} ms`);
    const waiting = await node.agent.until(
      "crash",
      "waiting",
      (pod) => statusOf(pod, "main").state?.waiting?.reason === "CrashLoopBackOff",
    );
    const { state, lastState, restartCount } = statusOf(waiting, "main");
    const described = `crash-test-node_default(${waiting.metadata?.uid})`;
    assert.equal(state?.waiting?.message, `back-off 10s restarting failed container=main pod=${described}`);
    assert.equal(lastState?.terminated?.exitCode, 4);
    assert.equal(restartCount, 1);
    assert.equal(waiting.status?.phase, "Running");
    await node.untilLogged('reason="BackOff"', `Back-off restarting failed container main in pod ${described}`);
    const endedId = lastState?.terminated?.containerID?.replace(/^.*:\/\//, "");
    const ended = (await node.instances(waiting, "main")).find(({ id }) => id === endedId);
    assert.ok(ended !== undefined);
    const again = await node.agent.until("crash", "second restart", (pod) => statusOf(pod, "main").restartCount === 2);
    const [second] = await node.instances(again, "main");
    assert.ok(second !== undefined && second.startedAt - ended.finishedAt >= 10_000_000_000n);
  });

  test("a program that is not there", async () => {
    const main = { name: "main", image: node.containerd.images.busybox, command: ["/no/such/program"] };
    await node.agent.apply("absent-never", { restartPolicy: "Never", containers: [main] });
    await node.agent.apply("absent-always", { containers: [main] });
    const over = await node.agent.until("absent-never", "over", isOver);
    assert.equal(over.status?.phase, "Failed");
    const ended = statusOf(over, "main").state?.terminated;
    assert.equal(ended?.exitCode, 128);
    assert.equal(ended?.reason, "StartError");
    assert.match(ended?.message ?? "", /no such file or directory/);
    const waiting = await node.agent.until(
      "absent-always",
      "waiting",
      (pod) => statusOf(pod, "main").state?.waiting?.reason === "RunContainerError",
    );
    assert.match(statusOf(waiting, "main").state?.waiting?.message ?? "", /no such file or directory/);
  });

  test("a container that wants more memory than it may have", async () => {
    const hog = node.shell("hog", "exec tail /dev/zero", { resources: { limits: { memory: "16Mi" } } });
    await node.agent.apply("oom", { restartPolicy: "Never", containers: [hog] });
    const over = await node.agent.until("oom", "over", isOver);
    const ended = statusOf(over, "hog").state?.terminated;
    assert.deepEqual([ended?.exitCode, ended?.reason], [137, "OOMKilled"]);
    assert.equal(over.status?.phase, "Failed");
  });
});

describe("last words", { concurrency: 8 }, () => {
  let node: TestNode;
  before(async () => {
    node = await TestNode.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const numbers = (count: number): string => `i=0; while [ $i -lt ${count} ]; do echo line $i; i=$((i+1)); done`;
  const tooLong = `head -c 5000 /dev/zero | tr '\\0' x`;
  for (const { title, script, settings, wanted } of [
    { title: "from the file", script: "echo bye > /dev/termination-log; exit 1", settings: {}, wanted: "bye\n" },
    { title: "also after success", script: "printf done > /dev/termination-log", settings: {}, wanted: "done" },
    {
      title: "from another file",
      script: "printf elsewhere > /tmp/words; exit 1",
      settings: { terminationMessagePath: "/tmp/words" },
      wanted: "elsewhere",
    },
    {
      title: "only the end of a long file",
      script: `(printf cut; ${tooLong}) > /dev/termination-log; exit 1`,
      settings: {},
      wanted: "x".repeat(4096),
    },
    { title: "none, though it printed", script: "echo printed; exit 1", settings: {}, wanted: undefined },
    {
      title: "the last 80 lines of the log of a failure",
      script: `${numbers(100)}; exit 1`,
      settings: { terminationMessagePolicy: "FallbackToLogsOnError" },
      wanted: Array.from({ length: 80 }, (_, index) => `line ${index + 20}\n`).join(""),
    },
    {
      title: "at most 2048 bytes of the log",
      script: `${tooLong}; exit 1`,
      settings: { terminationMessagePolicy: "FallbackToLogsOnError" },
      wanted: "x".repeat(2048),
    },
    {
      title: "the file rather than the log",
      script: "echo printed; printf written > /dev/termination-log; exit 1",
      settings: { terminationMessagePolicy: "FallbackToLogsOnError" },
      wanted: "written",
    },
    {
      title: "no log of a success",
      script: "echo printed",
      settings: { terminationMessagePolicy: "FallbackToLogsOnError" },
      wanted: undefined,
    },
  ] as const) {
    test(title, async () => {
      const name = `words-${title.replaceAll(/[^a-z0-9]+/g, "-")}`;
      await node.agent.apply(name, { restartPolicy: "Never", containers: [node.shell("main", script, settings)] });
      const pod = await node.agent.until(name, "over", isOver);
      assert.equal(statusOf(pod, "main").state?.terminated?.message, wanted);
    });
  }

  test("all messages of a pod together keep within 12 KiB", async () => {
    const names = ["a", "b", "c", "d"];
    const containers = names.map((name) => node.shell(name, `${tooLong} > /dev/termination-log; exit 1`));
    await node.agent.apply("many-words", { restartPolicy: "Never", containers });
    const pod = await node.agent.until("many-words", "over", isOver);
    for (const name of names) assert.equal(statusOf(pod, name).state?.terminated?.message, "x".repeat(12_288 / 4));
  });
});
