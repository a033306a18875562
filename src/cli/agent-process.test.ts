import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryIo } from "../../test/support/config-io.ts";
import { loadConfig } from "../config/index.ts";
import { agentConfig } from "./agent-process.ts";
import { layoutOf } from "./machine/index.ts";

test("the agent accepts the configuration that up writes, without a warning", async () => {
  const layout = layoutOf("/var/lib/nodelet");
  const settings = { manifests: "/srv/pods", runtimeEndpoint: layout.endpoint };
  const text = JSON.stringify(agentConfig(layout, settings, { api: 10250, health: 10248 }));
  const flags = [`--config=${layout.agentConfig}`, `--root-dir=${layout.agentRoot}`];
  const loaded = await loadConfig(flags, memoryIo({ [layout.agentConfig]: text }));
  assert.ok(loaded.kind === "config", JSON.stringify(loaded));
  assert.deepEqual(loaded.config.warnings, []);
  const { staticPodPath, containerRuntimeEndpoint, cgroupRoot, podLogsDir, authorization } = loaded.config.kubelet;
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
