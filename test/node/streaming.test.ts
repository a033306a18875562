import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { execCommand } from "../../src/beside/cli/exec-command.ts";
import type { Command, UserInput } from "../../src/beside/cli/io.ts";
import { logsCommand } from "../../src/beside/cli/logs-command.ts";
import { podsCommand } from "../../src/beside/cli/pods-command.ts";
import { topCommand } from "../../src/beside/cli/top-command.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { eventually, TestAgent } from "../support/agent.ts";
import { recordIo } from "../support/command-io.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { bytesRead, openFiles, rssMb } from "../support/process-figures.ts";
import { openSpdy, remoteCommand, type UpgradeTarget, upgrade } from "../support/spdy.ts";
import { ChannelSocket } from "../support/websocket.ts";

const open = {
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
};
const never = new AbortController().signal;

/** Somebody at a terminal, or a pipe, who has these words to say. */
function typing(isTTY: boolean, words: readonly string[]): UserInput {
  return {
    isTTY,
    setRaw: () => {},
    read: async function* () {
      for (const word of words) yield Buffer.from(word);
    },
    onResize: () => () => {},
  };
}

describe("exec, attach and port-forward of a real pod", { timeout: 280_000 }, () => {
  let containerd: TestContainerd;
  let agent: TestAgent;
  let port: number;

  before(async () => {
    containerd = await startContainerd();
    port = await freePort();
    agent = await TestAgent.start(containerd, { ...open, port });
    const web = "mkdir /www && echo hello > /www/index.html && httpd -f -p 80 -h /www";
    const image = containerd.images.busybox;
    await agent.apply("box", {
      containers: [
        { name: "main", image, command: ["sh", "-c", web] },
        {
          name: "echo",
          image,
          stdin: true,
          command: ["sh", "-c", "while read line; do echo got $line; done; sleep 1d"],
        },
      ],
    });
    await agent.until("box", "it runs", ({ status }) => status?.phase === "Running");
  });
  after(async () => {
    await agent?.[Symbol.asyncDispose]();
    await containerd?.[Symbol.asyncDispose]();
  });

  const target = (path: string): UpgradeTarget => ({ port, path, secure: true });
  const execTarget = (command: readonly string[], flags = "output=1&error=1", container = "main"): UpgradeTarget => {
    const words = command.map((word) => `command=${encodeURIComponent(word)}`).join("&");
    return target(`/exec/default/box-test-node/${container}?${words}&${flags}`);
  };

  test("stdout, stderr and the exit code", async () => {
    const command = await remoteCommand(execTarget(["sh", "-c", "echo out; echo err >&2; exit 3"]));
    using _ = command.connection;
    assert.equal(command.connection.protocol, "v4.channel.k8s.io");
    assert.equal(await command.exitCode(), 3);
    assert.deepEqual([command.stdout.text, command.stderr?.text], ["out\n", "err\n"]);
  });

  test("32 MB in and out again, byte for byte, and the end of input ends the command", async () => {
    const flags = "input=1&output=1&error=1";
    const command = await remoteCommand(execTarget(["cat"], flags), { stdin: true });
    using _ = command.connection;
    const [sent, received] = [createHash("sha256"), createHash("sha256")];
    command.stdout.onData = (chunk) => void received.update(chunk);
    for (let round = 0; round < 512; round++) {
      const chunk = randomBytes(64 * 1024);
      sent.update(chunk);
      await command.stdin?.write(chunk);
    }
    await command.stdin?.end();
    assert.equal(await command.exitCode(), 0);
    assert.equal(command.stdout.received, 512 * 64 * 1024);
    assert.equal(received.digest("hex"), sent.digest("hex"));
  });

  test("a reader that does not read holds up the writer, not the agent's memory", async () => {
    const rssBefore = rssMb(agent.pid);
    const command = await remoteCommand(execTarget(["sh", "-c", "dd if=/dev/zero bs=1M count=200"]));
    using _ = command.connection;
    let readOn = (): void => {};
    const reading = new Promise<void>((resolve) => {
      readOn = resolve;
    });
    command.stdout.onData = () => reading;
    // All buffers on the way are full when the agent reads no more.
    let passed = -1;
    const isHeldUp = async (): Promise<boolean> => {
      const before = passed;
      passed = bytesRead(agent.pid);
      await systemClock.sleep(500, never);
      return before === passed;
    };
    await eventually(isHeldUp, "the writer is held up", 60_000);
    const grown = rssMb(agent.pid) - rssBefore;
    assert.ok(grown < 40, `the agent grew by ${grown} MB`);
    readOn();
    assert.equal(await command.exitCode(), 0);
    assert.equal(command.stdout.received, 200 * 1024 * 1024);
  });

  test("a terminal, its size, and what is typed", async () => {
    const flags = "input=1&output=1&error=1&tty=1";
    const resized = 'while [ "$(stty size)" = "$first" ]; do sleep 0.1; done';
    const script = `first=$(stty size); echo $first; ${resized}; stty size; read answer; echo $answer`;
    const command = await remoteCommand(execTarget(["sh", "-c", script], flags), { stdin: true, tty: true });
    using _ = command.connection;
    await eventually(async () => command.stdout.text.includes("\r\n"), "the first size", 60_000);
    await command.resize?.write('{"Width":123,"Height":45}');
    await command.stdin?.write("typed\n");
    assert.equal(await command.exitCode(), 0);
    assert.match(command.stdout.text, /45 123\r\n/);
    assert.match(command.stdout.text, /typed\r\n$/);
  });

  test("nodelet exec on the local socket: output, exit code, input to its end, a terminal", async () => {
    const run = async (words: readonly string[], input?: UserInput) => {
      const { io, stdout, stderr } = recordIo("/", input);
      const isTTY = input?.isTTY === true;
      const code = await execCommand(["box", "-c", "main", `--root-dir=${agent.rootDir}`, ...words], { ...io, isTTY });
      return { code, out: stdout(), err: stderr() };
    };
    const failed = await run(["--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert.deepEqual(failed, { code: 3, out: "out\n", err: "err\n" });
    const piped = typing(false, ["one\n", "two\n"]);
    assert.deepEqual(await run(["-i", "--", "cat"], piped), { code: 0, out: "one\ntwo\n", err: "" });
    const typed = typing(true, ["word\n"]);
    // The size comes to the runtime beside what is typed, so it may be there a moment later.
    const sized = "read word; until stty size 2>/dev/null | grep .; do sleep 0.1; done; echo got $word";
    const { code, out } = await run(["-it", "--", "sh", "-c", sized], typed);
    assert.equal(code, 0);
    assert.match(out, /24 80\r\ngot word\r\n$/);
    const missing = await run(["--", "/no/such/program"]);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^nodelet exec: .*no such file/);
  });

  test("nodelet pods, logs and top on the local socket", async () => {
    const run = async (command: Command, words: readonly string[]): Promise<string> => {
      const { io, stdout, stderr } = recordIo("/");
      assert.equal(await command([...words, `--root-dir=${agent.rootDir}`], io), 0, stderr());
      return stdout();
    };
    assert.match(await run(podsCommand, []), /^default\/box-test-node +Running +2\/2 /m);
    assert.match(await run(topCommand, ["--containers"]), /^default\/box-test-node +\d+m +\d+Mi\n {2}(?:main|echo) /m);
    const talked = await remoteCommand(execTarget(["sh", "-c", "echo said > /proc/1/fd/1"]));
    using _ = talked.connection;
    assert.equal(await talked.exitCode(), 0);
    const logs = (): Promise<string> => run(logsCommand, ["box", "-c", "main", "--tail", "1"]);
    await eventually(async () => (await logs()) === "said\n", "the log has what was written", 60_000);
  });

  test("attach to a running container", async () => {
    const path = "/attach/default/box-test-node/echo?input=1&output=1&error=1";
    const attached = await remoteCommand(target(path), { stdin: true });
    using _ = attached.connection;
    await attached.stdin?.write("one\n");
    await eventually(async () => attached.stdout.text === "got one\n", "the answer", 60_000);
  });

  test("WebSocket: channels, status, and a token among the protocols that does not reach the runtime", async () => {
    const url = execTarget(["sh", "-c", "read word; echo $word; echo oops >&2; exit 4"], "input=1&output=1&error=1");
    using socket = await ChannelSocket.open(url, "v4.channel.k8s.io, channel.k8s.io");
    assert.equal(socket.protocol, "v4.channel.k8s.io");
    socket.send(0, "hello\n");
    await socket.closed;
    assert.deepEqual([socket.text(1), socket.text(2)], ["hello\n", "oops\n"]);
    assert.match(socket.text(3), /"reason":"ExitCode","message":"4"/);
  });

  test("port-forward: several connections at once; a port nobody listens on fails alone", async () => {
    using connection = await openSpdy(target("/portForward/default/box-test-node"), "portforward.k8s.io");
    const dial = async (requestid: string, remote: number) => {
      const headers = { port: String(remote), requestid };
      const error = await connection.stream({ ...headers, streamtype: "error" });
      await error.end();
      return { error, data: await connection.stream({ ...headers, streamtype: "data" }) };
    };
    const refused = await dial("0", 81);
    const dials = [await dial("1", 80), await dial("2", 80), await dial("3", 80)];
    for (const { data } of dials) await data.write("GET /index.html HTTP/1.0\r\n\r\n");
    for (const { data } of dials) {
      const how = await data.ended;
      assert.equal(how, "finished", refused.error.text);
      assert.match(data.text, /^HTTP\/1\.[01] 200 OK[\s\S]*hello\n$/);
    }
    await eventually(async () => refused.error.text !== "", "the refusal", 60_000);
    assert.match(refused.error.text, /error forwarding port 81 to pod .*connection refused/);
    const later = await dial("4", 80);
    await later.data.write("GET /index.html HTTP/1.0\r\n\r\n");
    await later.data.ended;
    assert.match(later.data.text, /hello\n$/);
  });

  test("refusals of agent and runtime reach the client as they are", async () => {
    const spdy = { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io" };
    const refusal = async (path: string, headers: Record<string, string>) => {
      const result = await upgrade(target(path), headers);
      assert.equal(result.type, "refused");
      return result.type === "refused" ? [result.status, result.text.trim()] : [];
    };
    const exec = "/exec/default/box-test-node";
    assert.deepEqual(await refusal(`${exec}/none?command=true&output=1`, spdy), [500, 'container not found ("none")']);
    assert.deepEqual(await refusal("/exec/default/gone/main?command=true&output=1", spdy), [404, "pod does not exist"]);
    assert.deepEqual(await refusal("/attach/default/box-test-node/none?output=1", spdy), [
      500,
      "container none not found in pod box-test-node_default",
    ]);
    const noVersion = await refusal(`${exec}/main?command=true&output=1`, { Upgrade: "SPDY/3.1" });
    assert.equal(noVersion[0], 400);
    assert.match(String(noVersion[1]), /X-Stream-Protocol-Version/);
    const unknown = { ...spdy, "X-Stream-Protocol-Version": "v9.channel.k8s.io" };
    assert.equal((await refusal(`${exec}/main?command=true&output=1`, unknown))[0], 403);
    const portless = { Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x" };
    assert.deepEqual(await refusal("/portForward/default/box-test-node", portless), [
      400,
      'query parameter "port" is required',
    ]);
    assert.deepEqual(await refusal("/pods", { Upgrade: "h2c" }), [405, "405: Method Not Allowed"]);
  });

  test("many short execs, some given up at once, leave nothing behind", async () => {
    for (let round = 0; round < 5; round++) await runOne();
    const before = { files: openFiles(agent.pid), rss: rssMb(agent.pid) };
    for (let round = 0; round < 15; round++) {
      const quitter = remoteCommand(execTarget(["sleep", "2"])).then(({ connection }) => connection[Symbol.dispose]());
      await Promise.all([runOne(), runOne(), runOne(), quitter]);
    }
    await eventually(async () => openFiles(agent.pid) <= before.files + 3, "files are closed", 30_000);
    const grown = rssMb(agent.pid) - before.rss;
    assert.ok(grown < 25, `the agent grew by ${grown} MB`);
  });

  async function runOne(): Promise<void> {
    const command = await remoteCommand(execTarget(["echo", "hi"]));
    using _ = command.connection;
    assert.equal(await command.exitCode(), 0);
    assert.equal(command.stdout.text, "hi\n");
  }
});
