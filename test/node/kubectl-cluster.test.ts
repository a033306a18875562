// What a Deployment does on a real control plane, done by hand with plain pods: ten run, are scaled, replaced and
// deleted; and what kubectl shows of them and of the node.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { run } from "../../src/beside/cli/machine/index.ts";
import { eventually } from "../support/agent.ts";
import { withoutKubectl } from "../support/kubectl.ts";
import { KubectlCluster } from "../support/kubectl-cluster.ts";
import { soon } from "../support/until.ts";

const untilReady = ["wait", "--for=condition=Ready", "--timeout=120s", "pods", "-l", "app=web"];

describe("ten pods by kubectl", { skip: withoutKubectl }, () => {
  let node: KubectlCluster;
  const kubectl = (...args: readonly string[]) => node.kubectl.succeed(...args);
  /** A pod as a controller would make it: with a service account's token, probed, found by its label. */
  const web = (name: string, version: string): object => {
    const container = {
      name: "main",
      image: node.containerd.images.busybox,
      command: ["sh", "-c", `trap exit TERM; echo ${version} > /index.html; httpd -p 8080 -h /; sleep 1000 & wait`],
      ports: [{ name: "http", containerPort: 8080 }],
      readinessProbe: { httpGet: { path: "/index.html", port: "http" }, periodSeconds: 1 },
      resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { memory: "32Mi" } },
    };
    const spec = { terminationGracePeriodSeconds: 1, containers: [container] };
    return { apiVersion: "v1", kind: "Pod", metadata: { name, labels: { app: "web", version } }, spec };
  };
  const rows = async (...args: readonly string[]): Promise<string[][]> => {
    const text = (await kubectl("get", "pods", "--no-headers", ...args)).trim();
    return text === "" ? [] : text.split("\n").map((row) => row.split(/ {2,}/));
  };
  const sandboxes = async (): Promise<number> => {
    const { socketPath } = node.containerd;
    const text = await run("ctr", ["--address", socketPath, "-n", "k8s.io", "containers", "ls", "-q"]);
    return text.split("\n").filter((line) => line !== "").length;
  };

  /** Some of it comes a moment later, events above all. */
  const describes = async (object: string, parts: readonly RegExp[]): Promise<void> => {
    let described = "";
    const isComplete = async (): Promise<boolean> => {
      described = await kubectl("describe", object);
      return parts.every((part) => part.test(described));
    };
    await eventually(isComplete, `the description of ${object}`, 30_000).catch(() => {});
    for (const part of parts) assert.match(described, part);
  };

  before(async () => {
    node = await KubectlCluster.start();
  });
  after(() => node[Symbol.asyncDispose]());

  test("the node is Ready, with what a kubelet tells of it", async () => {
    const ready = /^test-node +Ready +<none> +\S+ +v1\.34\.\d+\n$/;
    await eventually(
      async () => ready.test(await kubectl("get", "nodes", "--no-headers")),
      "the node is Ready",
      60_000,
    );
    await describes("node/test-node", [
      /^Labels: +.*kubernetes\.io\/arch=/m,
      /kubernetes\.io\/hostname=test-node/,
      /^Taints: +<none>$/m,
      /^Lease:\n +HolderIdentity: +test-node$/m,
      /^ +MemoryPressure +False .*KubeletHasSufficientMemory +kubelet has sufficient memory available$/m,
      /^ +DiskPressure +False .*KubeletHasNoDiskPressure /m,
      /^ +PIDPressure +False .*KubeletHasSufficientPID /m,
      /^ +Ready +True .*KubeletReady +kubelet is posting ready status$/m,
      /^Addresses:\n +InternalIP: +\S+\n +Hostname: +test-node$/m,
      /^Capacity:\n +cpu: +\d+\n/m,
      /^ +pods: +110$/m,
      /^ +Container Runtime Version: +containerd:\/\//m,
      /^Non-terminated Pods: +\(0 in total\)$/m,
      / Starting /,
      / NodeReady /,
    ]);
  });

  test("ten pods are bound, run and become ready, each with an address of its own", async () => {
    await node.kubectl.apply(...Array.from({ length: 10 }, (_, n) => web(`web-${n}`, "one")));
    await kubectl(...untilReady);
    const shown = await rows("-o", "wide");
    assert.equal(shown.length, 10);
    for (const [, ready, phase, restarts, , , onNode] of shown) {
      assert.deepEqual([ready, phase, restarts, onNode], ["1/1", "Running", "0", "test-node"]);
    }
    const addresses = new Set(shown.map((row) => row[5]));
    assert.equal(addresses.size, 10);
    for (const address of addresses) assert.match(address ?? "", /^\d+\.\d+\.\d+\.\d+$/);
    assert.equal(await page(shown[0]?.[5]), "one\n");
  });

  test("describe shows a pod's life", async () => {
    await describes("pod/web-0", [
      /^Node: +test-node\/\d+\./m,
      /^Status: +Running$/m,
      /^IP: +\d+\./m,
      /^ +Container ID: +containerd:\/\/[0-9a-f]{64}$/m,
      /^ +State: +Running\n +Started: /m,
      /^ +Ready: +True$/m,
      /^ +Readiness: +http-get http:\/\/:http\/index\.html /m,
      /^ +PodReadyToStartContainers +True/m,
      /^ +ContainersReady +True/m,
      /^ +kube-api-access-\w{5}:\n +Type: +Projected/m,
      /^QoS Class: +Burstable$/m,
      /Normal +Scheduled .*Successfully assigned default\/web-0 to test-node/,
      /Normal +Pulled .*already present on machine/,
      /Normal +Created .*Created container: main/,
      /Normal +Started .*Started container main/,
    ]);
    assert.match(await kubectl("describe", "node", "test-node"), /^Non-terminated Pods: +\(10 in total\)$/m);
  });

  test("scaled down to four and up to six, the others go on undisturbed", async () => {
    const idOf = (name: string) =>
      kubectl("get", "pod", name, "-o", "jsonpath={.status.containerStatuses[0].containerID}");
    const before = await idOf("web-0");
    await kubectl("delete", "pod", ...Array.from({ length: 6 }, (_, n) => `web-${n + 4}`));
    assert.deepEqual(
      (await rows("-l", "app=web")).map(([name]) => name),
      ["web-0", "web-1", "web-2", "web-3"],
    );
    await node.kubectl.apply(web("web-4", "one"), web("web-5", "one"));
    await kubectl(...untilReady);
    assert.equal((await rows("-l", "app=web")).length, 6);
    assert.equal(await idOf("web-0"), before);
  });

  test("replaced one by one under the same names, the new ones answer", async () => {
    const names = Array.from({ length: 6 }, (_, n) => `web-${n}`);
    const uids = await kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}");
    for (const name of names) {
      await kubectl("delete", "pod", name, "--wait=false");
      await kubectl("wait", "--for=delete", `pod/${name}`, "--timeout=60s");
      await node.kubectl.apply(web(name, "two"));
    }
    await kubectl(...untilReady);
    const shown = await rows("-l", "version=two", "-o", "wide");
    assert.equal(shown.length, 6);
    for (const row of shown) assert.equal(await page(row[5]), "two\n");
    const now = (await kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")).split(" ");
    assert.equal(now.filter((uid) => uids.includes(uid)).length, 0);
  });

  test("deleted all at once, nothing is left in the API or the runtime", async () => {
    await kubectl("delete", "pods", "-l", "app=web", "--timeout=120s");
    assert.deepEqual(await rows(), []);
    await eventually(async () => (await sandboxes()) === 0, "no container is left", 60_000);
    await eventually(
      async () => /^Non-terminated Pods: +\(0 in total\)$/m.test(await kubectl("describe", "node", "test-node")),
      "the node has none",
      10_000,
    );
  });
});

async function page(address: string | undefined): Promise<string> {
  const response = await fetch(`http://${address}:8080/index.html`, { signal: soon() });
  return await response.text();
}
