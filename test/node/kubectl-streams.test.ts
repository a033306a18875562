// Large and long-lived streams of kubectl through the local API server, to the built agent and a real containerd.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { open, readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { eventually } from "../support/agent.ts";
import { withoutKubectl } from "../support/kubectl.ts";
import { KubectlCluster } from "../support/kubectl-cluster.ts";

const megabyte = 1024 * 1024;
const echoed = megabyte / 4;
/** Each "l" is room for one more caller whom it has not yet taken in; whoever finds no room is cut off. */
const listen = `nc -${"l".repeat(16)}`;
/** On 7000 as many bytes as are wanted go back, later; on 7001 is a greeting. */
const server =
  `${listen} -p 7000 -e sh -c 'f=$(mktemp); head -c ${echoed} > $f; sleep 0.3; cat $f; rm $f' & ` +
  `exec ${listen} -p 7001 -e echo hello`;

describe("kubectl cp, port-forward and proxy", { skip: withoutKubectl }, () => {
  let node: KubectlCluster;
  before(async () => {
    node = await KubectlCluster.start();
    await node.run(node.pod("target"), node.pod("server", ["sh", "-c", server]));
  });
  after(() => node[Symbol.asyncDispose]());

  test("cp brings 100 MB there and back unchanged", async () => {
    const source = join(node.directory, "source");
    const sum = createHash("sha256");
    const file = await open(source, "w");
    const block = Buffer.alloc(megabyte);
    for (let n = 0; n < 100; n++) {
      for (let at = 0; at < megabyte; at += 4) block.writeUInt32LE(Math.imul(at + n * megabyte, 2654435761) >>> 0, at);
      sum.update(block);
      await file.write(block);
    }
    await file.close();
    const wanted = sum.digest("hex");
    await node.kubectl.succeed("cp", source, "target:/tmp/copy");
    assert.equal(
      await node.kubectl.succeed("exec", "target", "--", "sha256sum", "/tmp/copy"),
      `${wanted}  /tmp/copy\n`,
    );
    const back = join(node.directory, "back");
    await node.kubectl.succeed("cp", "target:/tmp/copy", back);
    assert.equal(
      createHash("sha256")
        .update(await readFile(back))
        .digest("hex"),
      wanted,
    );
  });

  test("port-forward carries connections side by side, each with an end of its own in both directions", {
    timeout: 60_000,
  }, async () => {
    await using forward = node.kubectl.start("port-forward", "pod/server", ":7000", ":7001");
    const [, port] = await forward.says(/127\.0\.0\.1:(\d+) -> 7000/);
    const [, greetingPort] = await forward.says(/127\.0\.0\.1:(\d+) -> 7001/);
    const echo = async (n: number): Promise<void> => {
      const sent = Buffer.alloc(echoed, `connection ${n} `);
      const socket = await connected(Number(port));
      socket.write(sent);
      const received = await buffer(socket);
      const found = `${received.length} of ${sent.length} bytes, kubectl says: ${forward.stderr}`;
      assert.ok(received.equals(sent), `connection ${n}: ${found}`);
      socket.end();
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => echo(n)));
    const greeting = await connected(Number(greetingPort));
    assert.equal((await buffer(greeting)).toString(), "hello\n");
    await echo(8);
    // The answer comes after our direction has ended: a half-closed connection must live on. containerd ends it after a
    // second, which a busy machine may need for the answer; then another one shows it.
    const halfClosed = async (): Promise<boolean> => {
      const sent = Buffer.alloc(echoed, "half closed ");
      const socket = await connected(Number(port));
      socket.end(sent);
      return (await buffer(socket)).equals(sent);
    };
    await eventually(halfClosed, "an answer comes after the question's direction has ended", 30_000);
  });

  test("a port on which nobody listens ends the connection, with the reason, and harms nothing", {
    timeout: 60_000,
  }, async () => {
    await using forward = node.kubectl.start("port-forward", "pod/server", ":7999");
    const [, deadPort] = await forward.says(/127\.0\.0\.1:(\d+) -> 7999/);
    const dead = await connected(Number(deadPort));
    dead.on("error", () => {});
    await once(dead.resume(), "end");
    dead.destroy();
    // kubectl gives the pod up after such an error, some versions at once; another one finds the pod well.
    const why = /forwarding \d+ -> 7999: .*connection refused/s;
    await eventually(async () => why.test(forward.stderr), "kubectl says why", 30_000);
    await using again = node.kubectl.start("port-forward", "pod/server", ":7001");
    const [, port] = await again.says(/127\.0\.0\.1:(\d+) -> 7001/);
    assert.equal((await buffer(await connected(Number(port)))).toString(), "hello\n");
  });

  for (const { path, shows } of [
    { path: "healthz", shows: /^ok$/ },
    { path: "pods", shows: /"kind":"PodList"/ },
    { path: "runningpods/", shows: /"kind":"PodList"/ },
    { path: "configz", shows: /"kubeletconfig"/ },
    { path: "containerLogs/default/server/main?tailLines=1", shows: /^/ },
    { path: "stats/summary", shows: /"nodeName":"test-node"/ },
    { path: "metrics", shows: /^kubelet_http_requests_total\{/m },
    { path: "metrics/resource", shows: /^node_cpu_usage_seconds_total /m },
    { path: "metrics/cadvisor", shows: /^container_memory_working_set_bytes\{/m },
    { path: "metrics/probes", shows: /^(?:$|#|prober)/ },
    { path: "metrics/slis", shows: /^(?:$|#|kubernetes)/ },
    { path: "logs/", shows: /<pre>/ },
  ]) {
    test(`get --raw shows ${path} of the node`, async () => {
      assert.match(await node.kubectl.succeed("get", "--raw", `/api/v1/nodes/test-node/proxy/${path}`), shows);
    });
  }

  test("top shows what the pods and the node use", async () => {
    const shown = await eventually(
      async () => {
        const { code, stdout } = await node.kubectl.run("top", "pods", "--no-headers");
        return code === 0 && /^server .*\ntarget /m.test(stdout) && stdout;
      },
      "figures of both pods",
      60_000,
    );
    assert.match(shown, /^server +\d+m +\d+Mi *\ntarget +\d+m +\d+Mi *\n$/);
    assert.match(
      await node.kubectl.succeed("top", "nodes", "--no-headers"),
      /^test-node +\d+m +\d+% +\d+Mi +\d+% *\n$/,
    );
  });

  test("a path that the node does not have answers 404 through the proxy", async () => {
    const { code, stderr } = await node.kubectl.run("get", "--raw", "/api/v1/nodes/test-node/proxy/frob");
    assert.equal(code, 1);
    assert.match(stderr, /NotFound/);
  });
});

async function connected(port: number): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  await once(socket, "connect");
  return socket;
}
