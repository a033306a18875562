// What people see with kubectl of a pod's output and inside: through the local API server, from the built agent and a
// real containerd.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { run } from "../../src/beside/cli/machine/index.ts";
import { eventually } from "../support/agent.ts";
import { withoutKubectl } from "../support/kubectl.ts";
import { KubectlCluster } from "../support/kubectl-cluster.ts";

/** Four lines, then one line for each that stdin brings. */
const talker = ["sh", "-c", "for n in 1 2 3; do echo line $n; done; echo last; while read x; do echo got $x; done"];

describe("kubectl logs, exec, attach and debug", { skip: withoutKubectl }, () => {
  let node: KubectlCluster;
  before(async () => {
    node = await KubectlCluster.start();
    const image = node.containerd.images.busybox;
    const [main] = [{ name: "main", image, command: talker, stdin: true }];
    const second = { name: "second", image, command: ["sh", "-c", "echo from the second; exec sleep 1000"] };
    const crashing = [
      "sh",
      "-c",
      "if [ -e /keep/once ]; then echo second life; exec sleep 1000; fi; touch /keep/once; echo first life; exit 3",
    ];
    const keep = { volumes: [{ name: "keep", emptyDir: {} }] };
    const mounts = { volumeMounts: [{ name: "keep", mountPath: "/keep" }] };
    await node.run(
      node.pod("talker", [], { containers: [main, second] }),
      node.pod("reborn", [], { ...keep, containers: [{ name: "main", image, command: crashing, ...mounts }] }),
    );
  });
  after(() => node[Symbol.asyncDispose]());
  const logs = (...args: readonly string[]) => node.kubectl.succeed("logs", ...args);

  test("logs shows all, the tail, and not what is older than asked", async () => {
    assert.equal(await logs("talker", "-c", "main", "--tail=-1"), "line 1\nline 2\nline 3\nlast\n");
    assert.equal(await logs("talker", "-c", "main", "--tail=2"), "line 3\nlast\n");
    assert.equal(await logs("talker", "-c", "main", "--limit-bytes=6"), "line 1");
    assert.equal(await logs("talker", "-c", "main", "--since=1h", "--tail=1"), "last\n");
    const inTheFuture = new Date(Date.now() + 3_600_000).toISOString();
    assert.equal(await logs("talker", "-c", "main", `--since-time=${inTheFuture}`), "");
  });

  test("logs --timestamps puts the time before every line", async () => {
    for (const line of (await logs("talker", "-c", "main", "--timestamps")).trimEnd().split("\n")) {
      assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d) (line \d|last)$/);
    }
  });

  test("logs --all-containers --prefix shows whose line it is", async () => {
    const lines = (await logs("talker", "--all-containers", "--prefix")).trimEnd().split("\n");
    assert.ok(lines.includes("[pod/talker/main] line 1"), lines.join("\n"));
    assert.ok(lines.includes("[pod/talker/second] from the second"), lines.join("\n"));
  });

  test("logs -p shows the life before this one", async () => {
    await eventually(async () => (await logs("reborn")) === "second life\n", "the second life", 60_000);
    assert.equal(await logs("reborn", "-p"), "first life\n");
    const { code, stderr } = await node.kubectl.run("logs", "talker", "-c", "second", "-p");
    assert.equal(code, 1);
    assert.match(stderr, /previous terminated container "second" in pod "talker" not found/);
  });

  test("logs of a container that is not there fails and says so", async () => {
    const { code, stderr } = await node.kubectl.run("logs", "talker", "-c", "absent");
    assert.equal(code, 1);
    assert.match(stderr, /container absent is not valid for pod talker/);
  });

  test("attach brings stdin to the container, and logs -f follows what comes of it", { timeout: 60_000 }, async () => {
    await using following = node.kubectl.start("logs", "-f", "talker", "-c", "main", "--tail=1");
    await following.says(/last\n/);
    await using attached = node.kubectl.start("attach", "-i", "talker", "-c", "main");
    attached.stdin.write("hello\n");
    await attached.says(/got hello\n/);
    await following.says(/got hello\n/);
    attached.stdin.write("again\n");
    await following.says(/got again\n/);
  });

  test("exec tells the exit code, keeps stdout and stderr apart, and needs a command that is there", async () => {
    const ran = await node.kubectl.run(
      "exec",
      "talker",
      "-c",
      "main",
      "--",
      "sh",
      "-c",
      "echo out; echo err >&2; exit 7",
    );
    assert.equal(ran.code, 7);
    assert.equal(ran.stdout, "out\n");
    assert.match(ran.stderr, /^err\ncommand terminated with exit code 7\n/);
    const absent = await node.kubectl.run("exec", "talker", "-c", "main", "--", "/absent");
    assert.notEqual(absent.code, 0);
    assert.match(absent.stderr, /no such file or directory/);
  });

  test("exec -i reads its stdin to the end, megabytes of it, and writes as much", async () => {
    const megabytes = Buffer.alloc(8 * 1024 * 1024, "nodelet\n");
    const counted = await node.kubectl.pipe(megabytes, "exec", "-i", "talker", "-c", "main", "--", "wc", "-c");
    assert.equal(counted.toString().trim(), String(megabytes.length));
    const echoed = await node.kubectl.pipe(megabytes, "exec", "-i", "talker", "-c", "main", "--", "cat");
    assert.ok(echoed.equals(megabytes));
  });

  test("exec -it gives a terminal that has the user's size and follows it", async () => {
    const nameOfTerminal = join(node.directory, "tty");
    const shell = 'exec "$KUBECTL" exec -it talker -c main -- sh';
    await using session = node.kubectl.onTerminal(`stty rows 30 cols 100; tty > ${nameOfTerminal}; ${shell}`);
    await session.says(/# /);
    const type = (line: string) => session.stdin.write(`${line}\n`);
    type("tty; echo size $(stty size)");
    await session.says(/\/dev\/pts\/\d+\r\n/);
    await session.says(/size 30 100\r\n/);
    await run("stty", ["-F", (await readFile(nameOfTerminal, "utf8")).trim(), "rows", "55", "cols", "140"]);
    await eventually(
      async () => {
        type("echo size $(stty size)");
        return session.stdout.includes("size 55 140\r\n");
      },
      "the new size",
      30_000,
    );
    type("exit 5");
    assert.equal((await session.end()).code, 5);
  });

  test("many short execs at once all come back with their own output", async () => {
    const words = Array.from({ length: 12 }, (_, n) => `word-${n}`);
    const outputs = await Promise.all(
      words.map((word) => node.kubectl.succeed("exec", "talker", "-c", "main", "--", "echo", word)),
    );
    assert.deepEqual(
      outputs,
      words.map((word) => `${word}\n`),
    );
  });

  test("debug adds a container to the running pod, sees the processes of its target, and can be read and entered", async () => {
    const image = node.containerd.images.busybox;
    const script = "echo debugging; exec sleep 1000";
    await node.kubectl.succeed(
      ...["debug", "talker", `--image=${image}`, "-c", "debugger", "--target=second", "--profile=general"],
      ...["--", "sh", "-c", script],
    );
    await eventually(
      async () => (await logs("talker", "-c", "debugger")) === "debugging\n",
      "the debugger's line",
      60_000,
    );
    const processes = await node.kubectl.succeed("exec", "talker", "-c", "debugger", "--", "ps");
    assert.match(processes, /sleep 1000/);
    assert.match(await node.kubectl.succeed("describe", "pod", "talker"), /Ephemeral Containers:\n {2}debugger:/);
    const { stderr, code } = await node.kubectl.run(
      "get",
      "pod",
      "talker",
      "-o",
      "jsonpath={.status.ephemeralContainerStatuses[0].state.running.startedAt}",
    );
    assert.equal(code, 0, stderr);
  });
});
