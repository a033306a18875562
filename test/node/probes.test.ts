import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CriClient } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Container, ContainerId, PodUid, Probe } from "../../src/ground/model/index.ts";
import { probeRunner, type RunProbe } from "../../src/pod/probes/index.ts";
import { targetOf } from "../../src/pod/probes/target.ts";
import { execThrough } from "../../src/pod/runtime/index.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { type RawPod, runRawPod } from "../support/raw-pod.ts";
import { until } from "../support/until.ts";

const never = new AbortController().signal;
const container: Container = {
  name: "main",
  ports: [{ name: "http", containerPort: 80 }],
  env: [{ name: "WORD", value: "hello" }],
};

describe("probes of a real container", () => {
  let containerd: TestContainerd;
  let client: CriClient;
  let pod: RawPod;
  let run: RunProbe;

  before(async () => {
    containerd = await startContainerd();
    const { endpoint, images, cgroupRoot } = containerd;
    const script = "mkdir /www && echo hello > /www/index.html && exec httpd -f -p 80 -h /www";
    const command = ["sh", "-c", script];
    pod = await runRawPod({ endpoint, name: "probed", image: images.busybox, command, cgroupParent: cgroupRoot });
    client = new CriClient({ runtimeEndpoint: endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
    const settings = { concurrency: 2, runtimeTimeoutMs: 120_000 };
    run = probeRunner(execThrough(client.runtime), systemClock, settings);
    const listening = () => probe({ httpGet: { port: "http", path: "/" } });
    await until("the server listens", async () => (await listening()).type === "success");
  });
  after(async () => {
    client?.close();
    await containerd?.[Symbol.asyncDispose]();
  });

  const probe = (spec: Probe, timeoutMs = 20_000) =>
    run(
      targetOf(spec, container, { pod: "probed" as PodUid, id: pod.containerId as ContainerId, podIp: pod.ip }),
      timeoutMs,
      never,
    );

  test("httpGet", async () => {
    assert.deepEqual(await probe({ httpGet: { port: "http", path: "/index.html" } }), { type: "success" });
    assert.deepEqual(await probe({ httpGet: { port: 80, path: "/none" } }), {
      type: "failure",
      output: "HTTP probe failed with statuscode: 404",
    });
    assert.deepEqual(await probe({ httpGet: { port: 81, path: "/" } }), {
      type: "failure",
      output: `Get "http://${pod.ip}:81/": dial tcp ${pod.ip}:81: connect: connection refused`,
    });
  });

  test("tcpSocket", async () => {
    assert.deepEqual(await probe({ tcpSocket: { port: "http" } }), { type: "success" });
    assert.deepEqual(await probe({ tcpSocket: { port: 81 } }), {
      type: "failure",
      output: `dial tcp ${pod.ip}:81: connect: connection refused`,
    });
  });

  test("exec", async () => {
    const exec = (...command: string[]): Probe => ({ exec: { command } });
    assert.deepEqual(await probe(exec("sh", "-c", "grep -q $(WORD) /www/index.html")), { type: "success" });
    assert.deepEqual(await probe(exec("sh", "-c", "echo out; echo err >&2; exit 3")), {
      type: "failure",
      output: "out\nerr\n",
    });
    assert.deepEqual(await probe(exec("sleep", "60"), 1_000), {
      type: "failure",
      output: 'command timed out: "sleep 60" timed out after 1s',
    });
    const missing = await probe(exec("/no/such/program"));
    assert.ok(missing.type === "error" && missing.state === "unknown", JSON.stringify(missing));
    assert.match(missing.message, /\/no\/such\/program/);
  });
});
