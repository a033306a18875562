import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseExposition, seriesOf } from "../../../test/support/exposition.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { never, silentLogger } from "../../ground/base/index.ts";
import { Engine } from "./engine/index.ts";
import { ShimMetrics } from "./metrics.ts";
import type { ShimContext } from "./service/context.ts";
import { StreamServer } from "./streaming/stream-server.ts";

test("what is asked of docker and of network plugins is counted, and told at /metrics", async () => {
  const clock = new FakeClock();
  const metrics = new ShimMetrics(clock);
  const directory = await mkdtemp(join(tmpdir(), "shim-metrics-"));
  const socketPath = join(directory, "docker.sock");
  const docker = createServer(({ url = "" }, response) => {
    if (url === "/_ping") response.writeHead(200, { "Api-Version": "1.41" }).end();
    else if (url.includes("/containers/gone/")) response.writeHead(404).end('{"message":"No such container: gone"}');
    else if (!url.includes("/containers/hung/")) response.end('{"Version":"20.10.24","ApiVersion":"1.41"}');
  });
  docker.listen(socketPath);
  await once(docker, "listening");
  const engine = new Engine({ socketPath, requestTimeoutMs: 1_000 }, clock, metrics.onCall);
  try {
    await engine.version(never);
    await assert.rejects(engine.inspectContainer("gone", never), /No such container/);
    const hung = assert.rejects(engine.startContainer("hung", never), /operation timeout/);
    await clock.advance(1_000);
    await hung;
    const leaving = new AbortController();
    const left = assert.rejects(engine.killContainer("hung", "SIGTERM", leaving.signal), { name: "AbortError" });
    leaving.abort();
    await left;
    await metrics.network("set_up_pod", never, async () => {});
    const failing = metrics.network("tear_down_pod", never, () => Promise.reject(new Error("no plugin")));
    await assert.rejects(failing, /no plugin/);

    await using server = new StreamServer({ metrics, clock, log: silentLogger } as unknown as ShimContext);
    await server.listen("127.0.0.1:0");
    const { origin } = new URL(server.requests.portForward({ podSandboxId: "s", port: [] }));
    const found = parseExposition(await (await fetch(`${origin}/metrics`)).text());
    const counted = (name: string, operation_type: string) => seriesOf(found, name, { operation_type })[0]?.value;
    const calls = "kubelet_docker_operations";
    for (const operation of ["version", "inspect_container", "start_container"])
      assert.equal(counted(`${calls}_total`, operation), 1, operation);
    assert.deepEqual(
      ["version", "inspect_container", "start_container"].map((each) => counted(`${calls}_errors_total`, each)),
      [undefined, 1, 1],
    );
    assert.equal(counted(`${calls}_timeout_total`, "start_container"), 1);
    assert.equal(counted(`${calls}_duration_seconds_sum`, "start_container"), 1);
    assert.equal(counted(`${calls}_total`, "stop_container"), undefined, "who leaves is no error of docker's");
    const network = "kubelet_network_plugin_operations";
    assert.deepEqual(
      ["set_up_pod", "tear_down_pod"].map((each) => [
        counted(`${network}_total`, each),
        counted(`${network}_errors_total`, each),
      ]),
      [
        [1, undefined],
        [1, 1],
      ],
    );
    assert.equal((await fetch(`${origin}/metrics`, { method: "POST" })).status, 405);
  } finally {
    engine.close();
    docker.closeAllConnections();
    docker.close();
    await rm(directory, { recursive: true });
  }
});
