// Volumes as a container sees them, with the built agent on a real containerd.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { CriClient } from "../../src/connections/cri/index.ts";
import { readMounts } from "../../src/connections/host/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Container, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { eventually, isReady, TestAgent } from "../support/agent.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";

describe("volumes on a real node", () => {
  let containerd: TestContainerd;
  let agent: TestAgent;
  let cri: CriClient;

  before(async () => {
    containerd = await startContainerd();
    agent = await TestAgent.start(containerd);
    cri = new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
  });
  after(async () => {
    cri?.close();
    await agent?.[Symbol.asyncDispose]();
    await containerd?.[Symbol.asyncDispose]();
  });

  /** What a command prints in a container of the pod. */
  async function sh(pod: Pod, script: string, container = "main"): Promise<string> {
    const id = pod.status?.containerStatuses?.find(({ name }) => name === container)?.containerID ?? "";
    const cmd = ["sh", "-c", script];
    const result = await cri.runtime.execSync({ containerId: id.replace(/^.*:\/\//, ""), cmd, timeout: 20n });
    const output = Buffer.from(result.stdout).toString() + Buffer.from(result.stderr).toString();
    return output.trim();
  }

  function main(more: Partial<Container> = {}): Container {
    return {
      name: "main",
      image: containerd.images.busybox,
      command: ["sh", "-c", "trap 'exit 0' TERM; sleep 1d & wait"],
      ...more,
    };
  }

  async function run(name: string, spec: Partial<PodSpec>, metadata: object = {}): Promise<Pod> {
    await agent.apply(name, spec, metadata);
    return agent.until(name, "ready", isReady);
  }

  async function object(kind: "ConfigMap" | "Secret", name: string, rest: object): Promise<void> {
    await agent.applyText(`${kind}-${name}`, JSON.stringify({ apiVersion: "v1", kind, metadata: { name }, ...rest }));
  }

  async function end(name: string, pod: Pod): Promise<void> {
    await agent.remove(name);
    await agent.untilGone(name);
    const uid = pod.metadata?.uid ?? "";
    await eventually(
      async () => !(await readdir(join(agent.rootDir, "pods"))).includes(uid),
      "the pod's directory is gone",
      60_000,
    );
    const left = (await readMounts()).filter(({ mountPoint }) => mountPoint.includes(uid));
    assert.deepEqual(left, []);
  }

  test("scratch space on disk and in memory: content, mode, owner, size", async () => {
    const pod = await run("scratch", {
      securityContext: { fsGroup: 4321 },
      containers: [
        main({
          volumeMounts: [
            { name: "disk", mountPath: "/disk" },
            { name: "memory", mountPath: "/memory" },
          ],
        }),
        { ...main(), name: "other", volumeMounts: [{ name: "disk", mountPath: "/shared", readOnly: true }] },
      ],
      volumes: [
        { name: "disk", emptyDir: {} },
        { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
      ],
    });
    assert.equal(await sh(pod, "stat -c '%a %u %g' /disk /memory"), "2777 0 4321\n3777 0 4321");
    await sh(pod, "echo hello > /disk/file");
    assert.equal(await sh(pod, "cat /shared/file", "other"), "hello");
    assert.match(await sh(pod, "touch /shared/x", "other"), /Read-only file system/);
    assert.match(await sh(pod, "grep ' /memory ' /proc/mounts"), /^tmpfs \/memory tmpfs rw.*size=1024k/);
    await sh(pod, "head -c 2000000 /dev/zero > /memory/big");
    assert.equal(await sh(pod, "stat -c %s /memory/big"), String(2 ** 20), "no more than its limit");
    await end("scratch", pod);
  });

  test("config maps and secrets from manifests beside the pods: content, mode, owner, read-only, update", async () => {
    await object("ConfigMap", "settings", { data: { "app.conf": "v1", other: "x" }, binaryData: { blob: "AAEC" } });
    await object("Secret", "keys", { stringData: { token: "hush" }, data: { raw: "c2VjcmV0" } });
    const pod = await run(
      "objects",
      {
        securityContext: { fsGroup: 4321 },
        containers: [
          main({
            env: [{ name: "FROM_MAP", valueFrom: { configMapKeyRef: { name: "settings", key: "other" } } }],
            volumeMounts: [
              { name: "settings", mountPath: "/settings" },
              { name: "keys", mountPath: "/keys" },
              { name: "all", mountPath: "/all" },
              { name: "settings", mountPath: "/one/app.conf", subPath: "app.conf" },
            ],
          }),
        ],
        volumes: [
          { name: "settings", configMap: { name: "settings" } },
          { name: "keys", secret: { secretName: "keys", defaultMode: 0o400 } },
          {
            name: "all",
            projected: {
              sources: [
                { configMap: { name: "settings", items: [{ key: "app.conf", path: "conf/app.conf", mode: 0o600 }] } },
                { secret: { name: "keys", items: [{ key: "token", path: "token" }] } },
                { secret: { name: "absent", optional: true } },
                { downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
              ],
            },
          },
        ],
      },
      { labels: { app: "web" } },
    );
    assert.equal(await sh(pod, "echo $FROM_MAP"), "x");
    assert.equal(await sh(pod, "cat /settings/app.conf /settings/other; od -An -tx1 /settings/blob"), "v1x 00 01 02");
    assert.equal(await sh(pod, "cat /keys/token; echo; cat /keys/raw"), "hush\nsecret");
    assert.equal(await sh(pod, "cat /all/conf/app.conf /all/token; echo; cat /all/labels"), 'v1hush\napp="web"');
    assert.equal(
      await sh(pod, "stat -Lc '%a %u %g' /settings/app.conf /keys/token /all/conf/app.conf"),
      "644 0 4321\n440 0 4321\n640 0 4321",
    );
    assert.match(await sh(pod, "grep ' /keys ' /proc/mounts"), /^tmpfs \/keys tmpfs ro/);
    for (const path of ["/settings", "/keys", "/all"]) {
      assert.match(await sh(pod, `touch ${path}/x`), /Read-only file system/, path);
    }

    await object("ConfigMap", "settings", { data: { "app.conf": "v2" } });
    await eventually(
      async () => (await sh(pod, "cat /settings/app.conf /all/conf/app.conf")) === "v2v2",
      "the change",
      10_000,
    );
    assert.equal(await sh(pod, "ls /settings"), "app.conf");
    assert.equal(await sh(pod, "cat /one/app.conf"), "v1", "what is mounted by subPath stays as it was");
    await end("objects", pod);
  });

  test("a pod waits for its config map, and starts as soon as it is there", async () => {
    await agent.apply("patient", {
      containers: [main({ volumeMounts: [{ name: "late", mountPath: "/late" }] })],
      volumes: [{ name: "late", configMap: { name: "late" } }],
    });
    await eventually(
      async () => /configmap \\?"late\\?" not found/.test(await agent.logTail()),
      "the event about the missing config map",
      60_000,
    );
    await object("ConfigMap", "late", { data: { a: "1" } });
    const pod = await agent.until("patient", "ready", isReady);
    assert.equal(await sh(pod, "cat /late/a"), "1");
    await end("patient", pod);
  });

  test("parts of volumes: directories are made, files mounted, links can't lead out", async () => {
    const host = join(containerd.stateDir, "host-data");
    await mkdir(join(host, "dir"), { recursive: true, mode: 0o755 });
    await writeFile(join(host, "dir/file"), "from the host");
    await writeFile(join(containerd.stateDir, "outside"), "not for pods");
    const pod = await run("parts", {
      containers: [
        main({
          env: [{ name: "WHO", value: "me" }],
          volumeMounts: [
            { name: "scratch", mountPath: "/new", subPath: "a/b" },
            { name: "scratch", mountPath: "/mine", subPathExpr: "logs/$(WHO)" },
            { name: "scratch", mountPath: "/scratch" },
            { name: "host", mountPath: "/file", subPath: "dir/file", readOnly: true },
          ],
        }),
      ],
      volumes: [
        { name: "scratch", emptyDir: {} },
        { name: "host", hostPath: { path: host, type: "Directory" } },
      ],
    });
    await sh(pod, "echo 1 > /new/x; echo 2 > /mine/y");
    assert.equal(await sh(pod, "cat /scratch/a/b/x /scratch/logs/me/y"), "1\n2");
    assert.equal(await sh(pod, "stat -c %a /new"), "777");
    assert.equal(await sh(pod, "cat /file"), "from the host");
    assert.match(await sh(pod, "echo x > /file"), /Read-only file system/);
    await end("parts", pod);
    assert.equal(await readFile(join(host, "dir/file"), "utf8"), "from the host");

    await symlink(containerd.stateDir, join(host, "escape"));
    await agent.apply("escape", {
      containers: [main({ volumeMounts: [{ name: "host", mountPath: "/out", subPath: "escape/outside" }] })],
      volumes: [{ name: "host", hostPath: { path: host } }],
    });
    const refused = await agent.until(
      "escape",
      "refused",
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === "CreateContainerConfigError",
    );
    assert.equal(
      refused.status?.containerStatuses?.[0]?.state?.waiting?.message,
      'failed to create subPath directory for volumeMount "host" of container "main"',
    );
    await agent.remove("escape");
    await agent.untilGone("escape");
  });
});
