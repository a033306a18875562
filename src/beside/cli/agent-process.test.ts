import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryIo } from "../../../test/support/config-io.ts";
import { loadConfig } from "../../ground/config/index.ts";
import { agentConfig } from "./agent-process.ts";
import { layoutOf } from "./machine/index.ts";

for (const host of ["127.0.0.1", "::1"] as const) {
  test(`the agent accepts the configuration that up writes for ${host}, without a warning`, async () => {
    const layout = layoutOf("/var/lib/nodelet");
    const settings = { manifests: "/srv/pods", runtimeEndpoint: layout.endpoint };
    const text = JSON.stringify(agentConfig(layout, settings, { host, api: 10250, health: 10248 }));
    const flags = [`--config=${layout.agentConfig}`, `--root-dir=${layout.agentRoot}`];
    const loaded = await loadConfig(flags, memoryIo({ [layout.agentConfig]: text }));
    assert.ok(loaded.kind === "config", JSON.stringify(loaded));
    assert.deepEqual(loaded.config.warnings, []);
    const { staticPodPath, containerRuntimeEndpoint, cgroupRoot, podLogsDir, authorization } = loaded.config.kubelet;
    const { address, healthzBindAddress } = loaded.config.kubelet;
    assert.deepEqual([address, healthzBindAddress], [host, host]);
    assert.deepEqual(
      { staticPodPath, containerRuntimeEndpoint, cgroupRoot, podLogsDir, mode: authorization.mode },
      {
        staticPodPath: "/srv/pods",
        containerRuntimeEndpoint: "unix:///var/lib/nodelet/containerd.sock",
        cgroupRoot: layout.cgroupRoot,
        podLogsDir: "/var/lib/nodelet/pod-logs",
        mode: "AlwaysAllow",
      },
    );
  });
}

test("with an API server, the agent believes its certificates and asks it who may do what", async () => {
  const layout = layoutOf("/var/lib/nodelet");
  const api = { kubeconfig: "/var/lib/nodelet/api/node-vm.kubeconfig", clientCaFile: "/var/lib/nodelet/api/ca.crt" };
  const settings = { manifests: "/srv/pods", runtimeEndpoint: layout.endpoint, api };
  const text = JSON.stringify(agentConfig(layout, settings, { host: "127.0.0.1", api: 10250, health: 10248 }));
  const flags = [`--config=${layout.agentConfig}`, `--root-dir=${layout.agentRoot}`, `--kubeconfig=${api.kubeconfig}`];
  const loaded = await loadConfig(flags, memoryIo({ [layout.agentConfig]: text }));
  assert.ok(loaded.kind === "config", JSON.stringify(loaded));
  assert.deepEqual(loaded.config.warnings, []);
  const { authentication, authorization, address } = loaded.config.kubelet;
  assert.equal(authentication.x509.clientCAFile, api.clientCaFile);
  assert.equal(authentication.anonymous.enabled, false);
  assert.equal(authentication.webhook.enabled, true);
  assert.equal(authorization.mode, "Webhook");
  assert.equal(address, "127.0.0.1");
});
