import assert from "node:assert/strict";
import { isIPv4 } from "node:net";
import { test } from "node:test";
import { NamespaceMode, PodSandboxConfig, PodSandboxState } from "../../src/connections/cri/index.ts";
import { fails, type Pods } from "./pods.ts";

export function sandboxContract(pods: Pods): void {
  test("the runtime names itself and its two conditions", async () => {
    const { version, runtimeName, runtimeVersion } = await pods.runtime.version({ version: "0.1.0" });
    assert.equal(version, "0.1.0");
    assert.ok(runtimeName !== "" && runtimeVersion !== "");
    const { status } = await pods.runtime.status({ verbose: false });
    const ready = status?.conditions.map(({ type, status }) => [type, status]);
    assert.deepEqual(ready, [
      ["RuntimeReady", true],
      ["NetworkReady", true],
    ]);
  });

  test("a sandbox lives: ready with an IP, then not ready without one, then gone", async () => {
    const { runtime } = pods;
    const { id, config } = await pods.run({ labels: { app: "web" } });
    assert.match(id, /^[0-9a-f]{64}$/);
    const status = await pods.sandboxStatus(id);
    assert.equal(status.state, PodSandboxState.SANDBOX_READY);
    assert.ok(isIPv4(status.network?.ip ?? ""));
    assert.deepEqual(status.metadata, config.metadata);
    assert.deepEqual(status.labels, config.labels);
    assert.deepEqual(status.annotations, config.annotations);
    const ageNs = BigInt(Date.now()) * 1_000_000n - status.createdAt;
    assert.ok(ageNs > -1_000_000_000n && ageNs < 60_000_000_000n, "createdAt is nanoseconds since 1970");
    const listed = (await runtime.listPodSandbox({ filter: undefined })).items.find((item) => item.id === id);
    assert.deepEqual(
      [listed?.metadata, listed?.state, listed?.createdAt, listed?.labels, listed?.annotations],
      [config.metadata, PodSandboxState.SANDBOX_READY, status.createdAt, config.labels, config.annotations],
    );

    await runtime.stopPodSandbox({ podSandboxId: id });
    const stopped = await pods.sandboxStatus(id);
    assert.equal(stopped.state, PodSandboxState.SANDBOX_NOTREADY);
    assert.equal(stopped.network?.ip ?? "", "");
    assert.equal(stopped.createdAt, status.createdAt);
    await runtime.stopPodSandbox({ podSandboxId: id });

    await runtime.removePodSandbox({ podSandboxId: id });
    await runtime.removePodSandbox({ podSandboxId: id });
    await assert.rejects(pods.sandboxStatus(id), fails("NotFound"));
    assert.deepEqual(await pods.listedSandboxIds({ id }), []);
  });

  test("on the node's network a sandbox has no IP of its own, and says so", async () => {
    const pod = await pods.run({ network: NamespaceMode.NODE });
    const { network, linux } = await pods.sandboxStatus(pod.id);
    assert.equal(network?.ip ?? "", "");
    assert.equal(linux?.namespaces?.options?.network, NamespaceMode.NODE);
    await pods.remove(pod);
  });

  test("pods have different IPs at the same time", async () => {
    const two = await Promise.all([pods.run(), pods.run()]);
    const ips = await Promise.all(two.map(async ({ id }) => (await pods.sandboxStatus(id)).network?.ip));
    assert.notEqual(ips[0], ips[1]);
    await Promise.all(two.map((pod) => pods.remove(pod)));
  });

  test("a sandbox name is taken until the sandbox is removed; another attempt has another name", async () => {
    const first = await pods.run();
    const name = first.config.metadata?.name ?? "";
    const again = () => pods.run({ name });
    const reserved = new RegExp(
      `failed to reserve sandbox name "${name}_contract_uid-${name}_0": name "${name}_contract_uid-${name}_0" is reserved for "${first.id}"`,
    );
    await assert.rejects(again(), fails("Unknown", reserved));
    const second = await pods.run({ name, attempt: 1 });
    const { createdAt } = await pods.sandboxStatus(first.id);
    assert.ok((await pods.sandboxStatus(second.id)).createdAt > createdAt, "the newer one sorts later");
    await pods.runtime.stopPodSandbox({ podSandboxId: first.id });
    await assert.rejects(again(), fails("Unknown", reserved));
    await pods.remove(first);
    await pods.remove(await again());
    await pods.remove(second);
  });

  test("sandboxes are found by id, prefix of the id, state and labels", async () => {
    const [a, b] = [await pods.run({ labels: { pick: "a" } }), await pods.run({ labels: { pick: "b", also: "x" } })];
    await pods.runtime.stopPodSandbox({ podSandboxId: b.id });
    const both = [a.id, b.id];
    const mine = async (filter: Parameters<Pods["listedSandboxIds"]>[0]) =>
      (await pods.listedSandboxIds(filter)).filter((id) => both.includes(id));
    assert.deepEqual(await mine({ id: a.id }), [a.id]);
    assert.deepEqual(await mine({ id: a.id.slice(0, 20) }), [a.id]);
    assert.deepEqual(await mine({ id: "nope" }), []);
    assert.deepEqual(await mine({ state: { state: PodSandboxState.SANDBOX_READY } }), [a.id]);
    assert.deepEqual(await mine({ state: { state: PodSandboxState.SANDBOX_NOTREADY } }), [b.id]);
    assert.deepEqual(await mine({ labelSelector: { pick: "b", also: "x" } }), [b.id]);
    assert.deepEqual(await mine({ labelSelector: { pick: "a", also: "x" } }), []);
    assert.equal((await pods.sandboxStatus(a.id.slice(0, 20))).id, a.id);
    await Promise.all([pods.remove(a), pods.remove(b)]);
  });

  test("what cannot be made or found is refused with a code to decide by", async () => {
    const { runtime } = pods;
    const config = await pods.config();
    const run = (config: PodSandboxConfig | undefined, runtimeHandler = "") =>
      runtime.runPodSandbox({ config, runtimeHandler });
    await assert.rejects(run(undefined), fails("Unknown", /must include metadata/));
    await assert.rejects(run(PodSandboxConfig.fromPartial({})), fails("Unknown", /must include metadata/));
    await assert.rejects(
      run(config, "no-such-handler"),
      fails("Unknown", /no runtime for "no-such-handler" is configured/),
    );
    await assert.rejects(pods.sandboxStatus("nope"), fails("NotFound"));
    await assert.rejects(pods.sandboxStatus(""), fails("Unknown"));
    await assert.rejects(runtime.stopPodSandbox({ podSandboxId: "nope" }), fails("NotFound"));
    await runtime.removePodSandbox({ podSandboxId: "nope" });
  });
}
