import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import {
  NamespaceMode,
  PodSandboxConfig,
  SecurityProfile_ProfileType as ProfileType,
  Protocol,
} from "../../../connections/cri/index.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import type { SandboxContext } from "./context.ts";
import { sandboxConfig } from "./sandbox.ts";

const identity = {
  "io.kubernetes.pod.name": "web",
  "io.kubernetes.pod.namespace": "shop",
  "io.kubernetes.pod.uid": "u-1",
};

async function configOf(
  spec: Partial<IdentifiedPod["spec"]> = {},
  changes: Partial<SandboxContext> = {},
  attempt = 0,
): Promise<PodSandboxConfig> {
  return (await sandboxConfig(examplePod(spec), attempt, exampleContext(changes))).config;
}

test("the sandbox of a plain pod, every field", async () => {
  const expected = PodSandboxConfig.fromPartial({
    metadata: { name: "web", namespace: "shop", uid: "u-1", attempt: 2 },
    hostname: "web",
    logDirectory: "/var/log/pods/shop_web_u-1",
    dnsConfig: {
      servers: ["10.96.0.10"],
      searches: ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.net"],
      options: ["ndots:5"],
    },
    portMappings: [],
    labels: identity,
    annotations: {},
    linux: {
      cgroupParent: "/kubepods/besteffort/podu-1",
      sysctls: {},
      overhead: {},
      resources: { cpuShares: 2n, cpuPeriod: 100_000n },
      securityContext: {
        namespaceOptions: {
          network: NamespaceMode.POD,
          pid: NamespaceMode.CONTAINER,
          ipc: NamespaceMode.POD,
          usernsOptions: { mode: NamespaceMode.NODE },
        },
        seccomp: { profileType: ProfileType.RuntimeDefault },
      },
    },
  });
  assert.deepEqual(await configOf({}, {}, 2), expected);
});

test("what is described survives the wire", async () => {
  const config = await configOf({ containers: [exampleContainer({ ports: [{ containerPort: 80, hostPort: 8080 }] })] });
  assert.deepEqual(PodSandboxConfig.decode(PodSandboxConfig.encode(config).finish()), config);
  assert.deepEqual(config.portMappings, [{ protocol: Protocol.TCP, containerPort: 80, hostPort: 8080, hostIp: "" }]);
});

test("overhead is an empty message, not a missing one, when the pod has none", async () => {
  const { linux } = await configOf();
  assert.notEqual(linux?.overhead, undefined);
});

test("on the host's network the sandbox has no name of its own, however odd its name", async () => {
  const { hostname, linux, dnsConfig } = await configOf({
    hostNetwork: true,
    hostname: "BAD",
    dnsPolicy: "ClusterFirst",
  });
  assert.equal(hostname, "");
  assert.equal(linux?.securityContext?.namespaceOptions?.network, NamespaceMode.NODE);
  assert.deepEqual(dnsConfig?.servers, ["192.0.2.1"]);
});

test("a full host name when asked for", async () => {
  const { hostname } = await configOf({ subdomain: "db", setHostnameAsFQDN: true });
  assert.equal(hostname, "web.db.shop.svc.cluster.local");
});

test("the cgroup follows class and driver", async () => {
  const all = { cpu: "1", memory: "1Gi" };
  const guaranteed = { containers: [exampleContainer({ resources: { requests: all, limits: all } })] };
  const systemd = { cgroups: { driver: "systemd", root: "/", perQos: true } } as const;
  assert.equal((await configOf(guaranteed)).linux?.cgroupParent, "/kubepods/podu-1");
  assert.equal((await configOf(guaranteed, systemd)).linux?.cgroupParent, "/kubepods.slice/kubepods-podu_1.slice");
  const withoutPodCgroups = { cgroups: { driver: "cgroupfs", root: "", perQos: false } } as const;
  assert.equal((await configOf(guaranteed, withoutPodCgroups)).linux?.cgroupParent, "");
});

test("sysctls, overhead and a user namespace reach the sandbox", async () => {
  const { linux } = await configOf(
    {
      hostUsers: false,
      overhead: { cpu: "100m" },
      securityContext: { sysctls: [{ name: "kernel/shm_rmid_forced", value: "1" }] },
    },
    { runtimeHandler: { name: "", recursiveReadOnlyMounts: false, userNamespaces: true } },
  );
  assert.deepEqual(linux?.sysctls, { "kernel.shm_rmid_forced": "1" });
  assert.equal(linux?.overhead?.cpuShares, 102n);
  assert.equal(linux?.securityContext?.namespaceOptions?.usernsOptions?.mode, NamespaceMode.POD);
});

test("notices are handed back, not recorded", async () => {
  const dns = { ...exampleContext().dns, clusterDns: [] };
  const { notices } = await sandboxConfig(examplePod(), 0, exampleContext({ dns }));
  assert.deepEqual(
    notices.map(({ about, event }) => [about, event.reason]),
    [
      ["node", "MissingClusterDNS"],
      ["pod", "MissingClusterDNS"],
    ],
  );
});

for (const [name, spec] of [
  ["a bad hostname", { hostname: "-" }],
  ["a bad groups policy", { securityContext: { supplementalGroupsPolicy: "Odd" } }],
  ["user namespaces without support", { hostUsers: false }],
] as const) {
  test(`${name} is a ConfigError`, async () => {
    await assert.rejects(configOf(spec), { name: "ConfigError" });
  });
}

test("only a pod that says true is given the node's namespaces: what refuses them asks for exactly that", async () => {
  for (const odd of [[false], "no", {}, 1]) {
    const spec = { hostNetwork: odd, hostPID: odd, hostIPC: odd } as unknown as Partial<IdentifiedPod["spec"]>;
    const { network, pid, ipc } = (await configOf(spec)).linux?.securityContext?.namespaceOptions ?? {};
    assert.deepEqual([network, pid, ipc], [NamespaceMode.POD, NamespaceMode.CONTAINER, NamespaceMode.POD]);
  }
});
