// Hooks of containers: after their start and before their end.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { after, before, describe, test } from "node:test";
import type { Container } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { isOver, statusOf, TestNode, type Trace } from "../support/test-node.ts";

describe("hooks", { concurrency: 6 }, () => {
  let node: TestNode;
  let server: Server;
  let port = 0;
  const requests: string[] = [];
  before(async () => {
    node = await TestNode.start();
    server = createServer((request, response) => {
      requests.push(`${request.url} by ${request.headers["user-agent"]}`);
      response.writeHead(request.url?.startsWith("/refuse") ? 500 : 200).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address !== null && typeof address === "object") port = address.port;
  });
  after(async () => {
    server?.close();
    await node?.[Symbol.asyncDispose]();
  });

  const write = (words: string): { command: string[] } => ({ command: ["sh", "-c", `echo ${words} >> /trace/words`] });
  const seconds = "$(cut -d. -f1 /proc/uptime)";
  /** Writes down when it is told to end, and ends; ready when it would hear of it. */
  const lasting = (trace: Trace, name: string, more: Partial<Container> = {}): Container =>
    node.shell(name, `trap 'echo ${name} ends ${seconds} >> /trace/words; exit 0' TERM; echo > /up; sleep 1d & wait`, {
      volumeMounts: [trace.mount],
      readinessProbe: { exec: { command: ["test", "-e", "/up"] }, periodSeconds: 1 },
      ...more,
    });
  /** A container without a probe is ready as soon as it runs, before its first command has. */
  const untilWritten = (trace: Trace, count: number): Promise<readonly string[]> =>
    eventually(
      async () => {
        const words = await trace.words();
        return words.length === count ? words : undefined;
      },
      `${count} lines are written`,
      60_000,
    );

  test("postStart by command: later containers wait for it", async () => {
    const trace = await node.trace("post-exec");
    const hook = { command: ["sh", "-c", "sleep 1; echo hook >> /trace/words"] };
    const second = node.shell("second", "echo second >> /trace/words; sleep 1d", { volumeMounts: [trace.mount] });
    await node.agent.apply("post-exec", {
      volumes: [trace.volume],
      containers: [lasting(trace, "first", { lifecycle: { postStart: { exec: hook } } }), second],
    });
    await node.agent.until("post-exec", "ready", isReady);
    assert.deepEqual(await untilWritten(trace, 2), ["hook", "second"]);
  });

  test("postStart by HTTP: any answer will do", async () => {
    const postStart = { httpGet: { host: "127.0.0.1", port, path: "/refuse?who=post" } };
    await node.agent.apply("post-http", { containers: [node.server("main", { lifecycle: { postStart } })] });
    const pod = await node.agent.until("post-http", "ready", isReady);
    assert.equal(statusOf(pod, "main").restartCount, 0);
    assert.ok(requests.includes("/refuse?who=post by kube-lifecycle/1.34"), String(requests));
  });

  test("postStart by sleep", async () => {
    const first = node.server("first", { lifecycle: { postStart: { sleep: { seconds: 2 } } } });
    await node.agent.apply("post-sleep", {
      terminationGracePeriodSeconds: 5,
      containers: [first, node.server("second")],
    });
    const pod = await node.agent.until("post-sleep", "ready", isReady);
    const startOf = async (name: string): Promise<number> => Number((await node.instances(pod, name))[0]?.startedAt);
    const laterMs = ((await startOf("second")) - (await startOf("first"))) / 1e6;
    assert.ok(laterMs >= 2_000, `the second container started ${laterMs} ms after the first`);
  });

  for (const [kind, postStart, complaint] of [
    [
      "command",
      () => ({ exec: { command: ["sh", "-c", "echo no luck >&2; exit 3"] } }),
      /^Exec lifecycle hook \(\[sh -c echo no luck >&2; exit 3\]\) for Container "main" in Pod ".*" failed - error: .*exited with 3.*no luck/,
    ],
    [
      "HTTP",
      () => ({ httpGet: { host: "127.0.0.1", port: 1, path: "/nobody" } }),
      /^HTTP lifecycle hook \(\/nobody\) for Container "main" in Pod ".*" failed - error: .*refused/,
    ],
  ] as const) {
    test(`postStart by ${kind} that fails: the container is killed, the reason is shown`, async () => {
      const name = `post-fails-${kind.toLowerCase()}`;
      await node.agent.apply(name, { containers: [node.server("main", { lifecycle: { postStart: postStart() } })] });
      const pod = await node.agent.until(
        name,
        "the hook's failure",
        (seen) => statusOf(seen, "main").state?.waiting?.reason === "PostStartHookError",
      );
      const { state, lastState } = statusOf(pod, "main");
      assert.match(state?.waiting?.message ?? "", complaint);
      // 137: told to end before it listened.
      assert.ok([0, 137].includes(lastState?.terminated?.exitCode ?? -1), JSON.stringify(lastState));
      const described = `${name}-test-node_default`;
      await node.untilLogged(described, 'reason="FailedPostStartHook"', "PostStartHook failed");
      await node.untilLogged(described, 'reason="Killing"', "FailedPostStartHook");
      await node.agent.until(name, "it is tried again", (seen) => statusOf(seen, "main").restartCount >= 1);
    });
  }

  test("preStop by command runs before the container is told to end", async () => {
    const trace = await node.trace("pre-exec");
    const preStop = { exec: { command: ["sh", "-c", "sleep 1; echo hook >> /trace/words"] } };
    await node.agent.apply("pre-exec", {
      terminationGracePeriodSeconds: 20,
      volumes: [trace.volume],
      containers: [lasting(trace, "main", { lifecycle: { preStop } })],
    });
    await node.agent.until("pre-exec", "ready", isReady);
    await node.agent.remove("pre-exec");
    await node.agent.untilGone("pre-exec");
    assert.match((await trace.words()).join(), /^hook,main ends \d+$/);
  });

  test("preStop by HTTP asks the pod itself, at its own address", async () => {
    const trace = await node.trace("pre-http");
    const answer = "printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n'";
    const listen = `nc -ll -p 8080 -e sh -c 'read line; echo "$line" >> /trace/words; ${answer}'`;
    const main = node.shell("main", `trap 'echo main ends >> /trace/words; exit 0' TERM; ${listen} & wait`, {
      volumeMounts: [trace.mount],
      ports: [{ name: "web", containerPort: 8080 }],
      readinessProbe: { tcpSocket: { port: "web" }, periodSeconds: 1 },
      lifecycle: { preStop: { httpGet: { port: "web", path: "/bye" } } },
    });
    await node.agent.apply("pre-http", {
      terminationGracePeriodSeconds: 20,
      volumes: [trace.volume],
      containers: [main],
    });
    await node.agent.until("pre-http", "ready", isReady);
    await node.agent.remove("pre-http");
    await node.agent.untilGone("pre-http");
    const words = (await trace.words()).map((line) => line.trim());
    assert.deepEqual(
      words.filter((line) => line !== ""),
      ["GET /bye HTTP/1.1", "main ends"],
    );
  });

  test("preStop by sleep takes its time from the grace", async () => {
    const trace = await node.trace("pre-sleep");
    await node.agent.apply("pre-sleep", {
      terminationGracePeriodSeconds: 20,
      volumes: [trace.volume],
      containers: [lasting(trace, "main", { lifecycle: { preStop: { sleep: { seconds: 2 } } } })],
    });
    const pod = await node.agent.until("pre-sleep", "ready", isReady);
    const before = Number(await node.sh(pod, "main", `echo ${seconds}`));
    await node.agent.remove("pre-sleep");
    await node.agent.untilGone("pre-sleep");
    const [ended] = (await trace.words()).map((line) => Number(line.split(" ")[2]));
    assert.ok(ended !== undefined && ended - before >= 2, `told to end ${Number(ended) - before} s after the request`);
  });

  test("preStop longer than the grace is left behind", async () => {
    const trace = await node.trace("pre-long");
    const preStop = { exec: { command: ["sh", "-c", "echo hook >> /trace/words; sleep 600"] } };
    await node.agent.apply("pre-long", {
      terminationGracePeriodSeconds: 2,
      volumes: [trace.volume],
      containers: [lasting(trace, "main", { lifecycle: { preStop } })],
    });
    await node.agent.until("pre-long", "ready", isReady);
    await node.agent.remove("pre-long");
    await node.agent.untilGone("pre-long");
    assert.match((await trace.words()).join(), /^hook,main ends \d+$/);
  });

  test("preStop that fails: said in an event, and the container is stopped all the same", async () => {
    const trace = await node.trace("pre-fails");
    const preStop = { exec: { command: ["false"] } };
    await node.agent.apply("pre-fails", {
      terminationGracePeriodSeconds: 20,
      volumes: [trace.volume],
      containers: [lasting(trace, "main", { lifecycle: { preStop } })],
    });
    await node.agent.until("pre-fails", "ready", isReady);
    await node.agent.remove("pre-fails");
    await node.agent.untilGone("pre-fails");
    assert.match((await trace.words()).join(), /^main ends \d+$/);
    await node.untilLogged("pre-fails-test-node_default", 'reason="FailedPreStopHook"', "PreStopHook failed");
  });

  test("no preStop for a container that ended by itself", async () => {
    const trace = await node.trace("pre-none");
    const main = node.shell("main", "exit 0", {
      volumeMounts: [trace.mount],
      lifecycle: { preStop: { exec: write("hook") } },
    });
    await node.agent.apply("pre-none", { restartPolicy: "Never", volumes: [trace.volume], containers: [main] });
    await node.agent.until("pre-none", "over", isOver);
    await node.agent.remove("pre-none");
    await node.agent.untilGone("pre-none");
    assert.deepEqual(await trace.words(), []);
  });
});
