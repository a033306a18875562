// What pods ask for, seen from inside containers that a real runtime made from our descriptions.

import assert from "node:assert/strict";
import { access, mkdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CriClient } from "../../src/connections/cri/index.ts";
import { readCgroupLayout } from "../../src/connections/host/index.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import {
  type CgroupNaming,
  type Container,
  type IdentifiedPod,
  type ObservedContainer,
  type PodUid,
  qosClassOf,
  type SandboxId,
} from "../../src/ground/model/index.ts";
import { CgroupTree, kernelCgroupFiles, PodCgroups } from "../../src/pod/resources/index.ts";
import {
  type ContainerContext,
  containerConfig,
  linkLegacyLog,
  nextRestartCount,
  podLogDirectory,
  sandboxConfig,
  translateContainer,
  translateSandbox,
} from "../../src/pod/runtime/index.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { exampleContext } from "../support/example-context.ts";
import { until } from "../support/until.ts";

const signal = new AbortController().signal;

interface Running {
  readonly pod: IdentifiedPod;
  readonly sandboxId: SandboxId;
  readonly ids: ReadonlyMap<string, string>;
  readonly context: ContainerContext;
  /** What a command in a container prints. */
  sh(script: string, container?: string): Promise<string>;
  observe(container?: string): Promise<ObservedContainer>;
  remove(): Promise<void>;
}

describe("descriptions made real by containerd", () => {
  let containerd: TestContainerd;
  let cri: CriClient;
  let naming: CgroupNaming;
  let cgroups: PodCgroups;
  let mountPoints: readonly string[];

  before(async () => {
    containerd = await startContainerd();
    cri = new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
    naming = { driver: "cgroupfs", root: containerd.cgroupRoot, perQos: true };
    const layout = await readCgroupLayout();
    const unified = layout.version === 1 ? layout.unifiedMountPoint : undefined;
    mountPoints =
      layout.version === 1 ? [...layout.mountPoints.values(), ...(unified ? [unified] : [])] : [layout.mountPoint];
    const settings = { cpuCfsQuota: true, cpuPeriodUs: 100_000, podPidsLimit: -1, memoryQos: false, hugePageSizes: [] };
    cgroups = new PodCgroups(naming, settings, {
      tree: new CgroupTree(layout, kernelCgroupFiles, systemClock),
      log: silentLogger,
      activePods: () => [],
      arePodsKnown: () => true,
      hasExclusiveCpus: () => false,
      isSettled: () => true,
    });
    await cgroups.createTiers();
  });
  after(async () => {
    cri?.close();
    await containerd?.[Symbol.asyncDispose]();
  });

  async function run(name: string, spec: Partial<IdentifiedPod["spec"]>): Promise<Running> {
    const { runtime, images } = cri;
    const busybox = containerd.images.busybox;
    const containers: readonly Container[] = (spec.containers ?? [{ name: "app" }]).map((container) => ({
      image: busybox,
      command: ["sleep", "600"],
      ...container,
    }));
    const pod: IdentifiedPod = {
      metadata: { name, namespace: "shop", uid: `uid-${name}`, labels: { app: name }, annotations: { note: name } },
      spec: { enableServiceLinks: true, securityContext: {}, ...spec, containers },
    };
    const rootDir = join(containerd.stateDir, "kubelet");
    const { image } = await images.imageStatus({
      image: { image: busybox, annotations: {}, userSpecifiedImage: "", runtimeHandler: "" },
      verbose: false,
    });
    await mkdir(join(rootDir, "pods", pod.metadata.uid), { recursive: true });
    await cgroups.ensure(pod);
    const base = exampleContext({
      rootDir,
      podLogsDir: join(containerd.stateDir, "pod-logs"),
      cgroups: naming,
      image: { ref: image?.id ?? "", uid: image?.uid?.value, username: image?.username },
      volumes: new Map([
        [
          "data",
          {
            type: "filesystem",
            hostPath: join(rootDir, "pods", pod.metadata.uid, "data"),
            readOnly: false,
            relabel: false,
          },
        ],
      ]),
    });
    await mkdir(podLogDirectory(base, pod), { recursive: true });
    const { config } = await sandboxConfig(pod, 0, base);
    const { podSandboxId } = await runtime.runPodSandbox({ config, runtimeHandler: "" });
    const { status } = await runtime.podSandboxStatus({ podSandboxId, verbose: false });
    assert.ok(status !== undefined);
    const sandbox = translateSandbox(status);
    const context: ContainerContext = { ...base, podIps: sandbox.ip ? [sandbox.ip] : [] };
    const ids = new Map<string, string>();
    for (const container of containers) {
      const described = await containerConfig(pod, container, context, signal);
      const { containerId } = await runtime.createContainer({ podSandboxId, config: described, sandboxConfig: config });
      await runtime.startContainer({ containerId });
      ids.set(container.name, containerId);
    }
    const idOf = (container: string): string => ids.get(container) ?? assert.fail(`no container ${container}`);
    return {
      pod,
      sandboxId: sandbox.id,
      ids,
      context,
      async sh(script, container = "app") {
        const cmd = ["sh", "-c", script];
        const result = await runtime.execSync({ containerId: idOf(container), cmd, timeout: 20n });
        assert.equal(result.exitCode, 0, `${script}: ${result.stderr}`);
        return result.stdout.toString().trim();
      },
      async observe(container = "app") {
        const answer = await runtime.containerStatus({ containerId: idOf(container), verbose: false });
        assert.ok(answer.status !== undefined);
        return translateContainer(answer.status, sandbox.id);
      },
      async remove() {
        await runtime.stopPodSandbox({ podSandboxId });
        await runtime.removePodSandbox({ podSandboxId });
        await cgroups.remove(pod.metadata.uid as PodUid, signal);
      },
    };
  }

  test("names, resolver, hosts file, variables and arguments", async () => {
    const pod = await run("names", {
      subdomain: "db",
      setHostnameAsFQDN: true,
      hostAliases: [{ ip: "192.0.2.9", hostnames: ["alias"] }],
      dnsConfig: { options: [{ name: "ndots", value: "2" }] },
      containers: [
        {
          name: "app",
          command: ["sh", "-c", "echo $0 $1 > /tmp/args; pwd >> /tmp/args; exec sleep 600"],
          args: ["$(GREETING)", "$$(GREETING)"],
          workingDir: "/tmp",
          env: [
            { name: "WHO", value: "world" },
            { name: "GREETING", value: "hello-$(WHO)" },
            { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
            { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          ],
        },
      ],
    });
    try {
      const [ip] = pod.context.podIps;
      assert.equal(await pod.sh("hostname"), "names.db.shop.svc.cluster.local");
      assert.deepEqual((await pod.sh("cat /etc/resolv.conf")).split("\n"), [
        "search shop.svc.cluster.local svc.cluster.local cluster.local example.net",
        "nameserver 10.96.0.10",
        "options ndots:2",
      ]);
      const hosts = await pod.sh("cat /etc/hosts");
      assert.match(hosts, /^# Kubernetes-managed hosts file\.\n/);
      assert.ok(hosts.includes(`\n${ip}\tnames.db.shop.svc.cluster.local\tnames\n`), hosts);
      assert.ok(hosts.endsWith("# Entries added by HostAliases.\n192.0.2.9\talias"), hosts);
      assert.equal(await pod.sh('echo "$GREETING $IP $NAME"'), `hello-world ${ip} names`);
      assert.equal(await pod.sh("cat /tmp/args"), "hello-world $(GREETING)\n/tmp");
    } finally {
      await pod.remove();
    }
  });

  test("users, groups, capabilities, privileges, masks, sysctls, read-only root", async () => {
    const pod = await run("security", {
      securityContext: {
        runAsUser: 1234,
        runAsGroup: 2345,
        fsGroup: 3456,
        supplementalGroups: [4567],
        sysctls: [{ name: "kernel/shm_rmid_forced", value: "1" }],
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: "app",
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            runAsNonRoot: true,
            capabilities: { drop: ["ALL"] },
          },
        },
        { name: "root", securityContext: { runAsUser: 0, capabilities: { add: ["NET_ADMIN"], drop: ["MKNOD"] } } },
      ],
    });
    try {
      assert.equal(
        await pod.sh("id -u; id -g; id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' '"),
        "1234\n2345\n2345 3456 4567",
      );
      assert.equal(await pod.sh("cat /proc/sys/kernel/shm_rmid_forced"), "1");
      assert.equal(
        await pod.sh("grep -E 'NoNewPrivs|CapEff' /proc/self/status | tr '\\t' ' '"),
        "CapEff: 0000000000000000\nNoNewPrivs: 1",
      );
      assert.equal(await pod.sh("touch /x 2>/dev/null && echo written || echo refused"), "refused");
      assert.equal(await pod.sh("head -c1 /proc/kcore 2>/dev/null | wc -c"), "0");
      assert.equal(
        await pod.sh("echo 1 2>/dev/null > /proc/sys/kernel/panic && echo written || echo refused", "root"),
        "refused",
      );
      const capabilities = Number.parseInt(await pod.sh("grep CapEff /proc/self/status | cut -f2", "root"), 16);
      assert.equal((capabilities >> 12) & 1, 1, "NET_ADMIN was added");
      assert.equal((capabilities >> 27) & 1, 0, "MKNOD was dropped");
      assert.equal(await pod.sh("grep NoNewPrivs /proc/self/status | cut -f2", "root"), "0");
    } finally {
      await pod.remove();
    }
  });

  test("namespaces: own processes by default, shared when asked for, the host's when asked for", async () => {
    const apart = await run("apart", {});
    const together = await run("together", {
      shareProcessNamespace: true,
      containers: [{ name: "app" }, { name: "other" }],
    });
    const onHost = await run("on-host", { hostNetwork: true, hostPID: true, hostIPC: true });
    try {
      assert.match(await apart.sh("cat /proc/1/cmdline | tr '\\0' ' '"), /^sleep 600/);
      const pidNamespace = "readlink /proc/self/ns/pid";
      assert.equal(await together.sh(pidNamespace), await together.sh(pidNamespace, "other"));
      assert.notEqual(await together.sh(pidNamespace), await apart.sh(pidNamespace));
      const ownNamespaces = await readNamespaces("/proc/self/ns");
      const inside = (await onHost.sh("for n in net pid ipc; do readlink /proc/self/ns/$n; done")).split("\n");
      assert.deepEqual(inside, ownNamespaces);
      assert.match(await onHost.sh("head -1 /etc/hosts"), /\(host network\)/);
      assert.equal(onHost.context.podIps.length, 0);
    } finally {
      for (const pod of [apart, together, onHost]) await pod.remove();
    }
  });

  test("resources arrive in the cgroups of pod and container, and the score of the process", async () => {
    const pod = await run("resources", {
      containers: [
        {
          name: "app",
          resources: { requests: { cpu: "100m", memory: "1Gi" }, limits: { cpu: "500m", memory: "2Gi" } },
        },
      ],
    });
    try {
      assert.equal(qosClassOf(pod.pod), "Burstable");
      const id = pod.ids.get("app") ?? "";
      const path = `${containerd.cgroupRoot}/kubepods/burstable/poduid-resources/${id}`;
      assert.ok((await pod.sh("cat /proc/self/cgroup")).includes(`kubepods/burstable/poduid-resources/${id}`));
      const { resources } = await pod.observe();
      assert.deepEqual(resources, {
        cpuShares: 102,
        cpuQuota: 50_000,
        cpuPeriod: 100_000,
        memoryLimitBytes: 2n << 30n,
      });
      const layout = await readCgroupLayout();
      if (layout.version === 1) {
        const at = (controller: string, file: string): Promise<string> =>
          readFile(join(layout.mountPoints.get(controller) ?? "", path, file), "utf8");
        assert.equal((await at("cpu", "cpu.shares")).trim(), "102");
        assert.equal((await at("cpu", "cpu.cfs_quota_us")).trim(), "50000");
        assert.equal((await at("memory", "memory.limit_in_bytes")).trim(), String(2n << 30n));
        assert.equal((await at("cpu", "../cpu.cfs_quota_us")).trim(), "50000");
      }
      // 1 GiB of 16 GiB requested, in the made-up machine of the context.
      assert.equal(await pod.sh("cat /proc/1/oom_score_adj"), String(1000 - Math.floor(1000 / 16)));
    } finally {
      await pod.remove();
    }
  });

  test("logs, their link, last words, restart counts and annotations come back", async () => {
    const legacyDir = join(containerd.stateDir, "legacy");
    await mkdir(legacyDir, { recursive: true });
    const preStop = { exec: { command: ["true"] } };
    const pod = await run("logs", {
      terminationGracePeriodSeconds: 7,
      containers: [
        {
          name: "app",
          terminationMessagePath: "/dev/termination-log",
          terminationMessagePolicy: "File",
          lifecycle: { preStop },
          command: ["sh", "-c", "echo hello; echo farewell > /dev/termination-log; exec sleep 600"],
        },
      ],
    });
    try {
      const id = pod.ids.get("app") ?? "";
      const log = join(podLogDirectory(pod.context, pod.pod), "app/0.log");
      await until("the container has spoken", async () => (await readFile(log, "utf8")).includes("hello"));
      assert.match(await readFile(log, "utf8"), / stdout F hello\n/);
      const { podLogsDir } = pod.context;
      await linkLegacyLog(
        { pod: pod.pod, name: "app", id, restartCount: 0 },
        { podLogsDir, legacyDir, log: silentLogger },
      );
      assert.match(await readFile(join(legacyDir, `logs_shop_app-${id}.log`), "utf8"), /hello/);
      const observed = await pod.observe();
      assert.equal(observed.state, "running");
      assert.equal(observed.logPath, log);
      const words = observed.mounts.find(({ containerPath }) => containerPath === "/dev/termination-log");
      assert.equal(await readFile(words?.hostPath ?? "", "utf8"), "farewell\n");
      const { restartCount, terminationGraceSeconds, hash } = observed.annotations;
      assert.deepEqual([restartCount, terminationGraceSeconds], [0, 7]);
      assert.match(hash, /^[0-9a-f]{1,8}$/);
      assert.deepEqual(observed.annotations.preStop, preStop);
      assert.equal(await nextRestartCount(observed, "", 0), 1);
      assert.equal(await nextRestartCount(undefined, join(log, ".."), 0), 1);
    } finally {
      await pod.remove();
      await rm(legacyDir, { recursive: true });
    }
  });

  test("a volume is mounted as asked for", async () => {
    const data = join(containerd.stateDir, "kubelet/pods/uid-volume/data");
    await mkdir(join(data, "safe/inner"), { recursive: true });
    await writeFile(join(data, "safe/inner/file"), "content");
    const pod = await run("volume", {
      containers: [
        {
          name: "app",
          env: [{ name: "DIR", value: "inner" }],
          volumeMounts: [
            { name: "data", mountPath: "/writable" },
            { name: "data", mountPath: "/sub", subPathExpr: "$(DIR)", readOnly: true },
          ],
        },
      ],
    });
    try {
      assert.equal(await pod.sh("cat /sub/file"), "content");
      assert.equal(await pod.sh("touch /sub/x 2>/dev/null && echo written || echo refused"), "refused");
      await pod.sh("echo new > /writable/made");
      assert.equal(await readFile(join(data, "made"), "utf8"), "new\n");
    } finally {
      await pod.remove();
    }
  });

  test("a removed pod leaves no cgroup behind in any hierarchy", async () => {
    const pod = await run("gone", {});
    await pod.remove();
    assert.equal((await cgroups.list()).has("uid-gone" as PodUid), false);
    for (const mountPoint of mountPoints) {
      await assert.rejects(access(join(mountPoint, naming.root, "kubepods/besteffort/poduid-gone")), {
        code: "ENOENT",
      });
    }
  });
});

async function readNamespaces(directory: string): Promise<readonly string[]> {
  return await Promise.all(["net", "pid", "ipc"].map((name) => readlink(join(directory, name))));
}
