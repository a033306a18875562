// Attacks on a node through volumes, tried on a real one. Each test names the advisory whose mistake it tries.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import type { Container } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import type { ApiCluster } from "../support/api-cluster.ts";
import { TestCsiDriver } from "../support/csi-driver.ts";
import { VolumeCluster } from "../support/volume-cluster.ts";

const soon = (): AbortSignal => AbortSignal.timeout(answerMs);
const namespace = "default";
const secretText = "Hush-4711-nobody-may-log-this";

describe("attacks through volumes on a real node", () => {
  let volumes: VolumeCluster;
  let cluster: ApiCluster;
  let outside: string;
  before(async () => {
    volumes = await VolumeCluster.start({}, ["-v=10"]);
    cluster = volumes.cluster;
    outside = join(volumes.containerd.stateDir, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "of-the-node"), "not for pods");
  });
  after(() => volumes?.[Symbol.asyncDispose]());

  const unharmed = async (): Promise<void> => {
    assert.deepEqual(await readdir(outside), ["of-the-node"]);
    assert.equal(await readFile(join(outside, "of-the-node"), "utf8"), "not for pods");
  };

  async function secret(name: string, text: string): Promise<void> {
    const body = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, stringData: { key: text } };
    await cluster.admin.create(resources.secrets, { namespace }, body, soon());
  }

  test("CVE-2017-1002101, CVE-2021-25741: a directory is swapped for a link while containers start with it", async () => {
    const trace = join(volumes.containerd.stateDir, "seen");
    await mkdir(trace);
    // Whatever state it meets, because a directory was made for a victim in between, it comes back from.
    const swapping = [
      "cd /v && mkdir real && echo > real/of-the-pod && ln -s $OUTSIDE link && echo > ready",
      "while [ ! -e stop ]; do mv -T real x; mv -T x real; mv -T link x || rmdir x; mv -T x link; done 2>/dev/null",
      "mv -T real x; sleep 1d & wait",
    ].join("; ");
    const looks = (index: number): Container => ({
      ...volumes.main(),
      name: `victim-${index}`,
      command: ["sh", "-c", `ls /part >> /seen/${index}; sleep 1d & wait`],
      volumeMounts: [
        { name: "v", mountPath: "/part", subPath: "x" },
        { name: "seen", mountPath: "/seen" },
      ],
    });
    const victims = Array.from({ length: 16 }, (_, index) => looks(index));
    const { metadata } = await cluster.create("swaps", {
      terminationGracePeriodSeconds: 0,
      // Restarts by itself, and so goes on beside the others.
      initContainers: [
        {
          ...volumes.main(),
          name: "swapper",
          restartPolicy: "Always",
          command: ["sh", "-c", swapping],
          env: [{ name: "OUTSIDE", value: outside }],
          volumeMounts: [{ name: "v", mountPath: "/v" }],
          startupProbe: { exec: { command: ["test", "-e", "/v/ready"] }, periodSeconds: 1, failureThreshold: 60 },
        },
      ],
      containers: victims,
      volumes: [
        { name: "v", emptyDir: {} },
        { name: "seen", hostPath: { path: trace } },
      ],
    });
    await cluster.until("swaps", "every victim was tried", ({ status }) => {
      const states = (status?.containerStatuses ?? []).map(({ state }) => state);
      const isTried = (state: (typeof states)[number]): boolean =>
        state?.running !== undefined || state?.waiting?.reason === "CreateContainerConfigError";
      return states.filter(isTried).length === victims.length;
    });
    const reports = async (): Promise<readonly string[]> =>
      Promise.all((await readdir(trace)).map((name) => readFile(join(trace, name), "utf8")));
    // Those that were refused because of the link are tried again, and are served once there is none.
    const volume = join(cluster.agent.rootDir, "pods", metadata.uid, "volumes/kubernetes.io~empty-dir/v");
    await writeFile(join(volume, "stop"), "");
    await eventually(async () => (await reports()).length === victims.length, "all have run", 120_000);
    await cluster.delete("swaps", 0);
    await cluster.untilGone("swaps");
    // Empty when the directory was made for them in the moment in which it was missing.
    for (const seen of await reports()) assert.ok(seen === "" || seen === "of-the-pod\n", seen);
    await unharmed();
  });

  test("CVE-2017-1002102: a privileged container plants links where the agent writes and deletes", async () => {
    await secret("planted", "v1");
    const pod = await volumes.run("plants", {
      containers: [
        volumes.main({
          securityContext: { privileged: true },
          volumeMounts: [
            { name: "keys", mountPath: "/keys" },
            { name: "scratch", mountPath: "/scratch" },
          ],
        }),
      ],
      volumes: [
        { name: "keys", secret: { secretName: "planted" } },
        { name: "scratch", emptyDir: {} },
      ],
    });
    assert.match(await volumes.sh(pod, "mv /keys/key /keys/x"), /Read-only file system/);
    // The version on disk becomes a link out of the volume: whoever deletes what is in it deletes the node's files.
    const plant = [
      "mount -o remount,rw /keys && cd /keys && v=$(readlink ..data)",
      `mv $v /scratch/away && ln -s ${outside} $v && ln -s ${outside} ..2001_01_01_00_00_00.1 && ln -s ${outside} dir`,
      `ln -s ${outside} /scratch/link && echo planted`,
    ].join(" && ");
    assert.equal(await volumes.sh(pod, plant), "planted");
    const body = { stringData: { key: "v2" } };
    await cluster.admin.patch(resources.secrets, { namespace, name: "planted" }, { type: "merge", body }, soon());
    await eventually(async () => (await volumes.sh(pod, "cat /keys/key")) === "v2", "the update", 30_000);
    await unharmed();
    await volumes.end("plants", pod);
    await unharmed();
  });

  test("secrets are not open to other users of the node, and lie in memory only", async () => {
    await secret("private", secretText);
    const pod = await volumes.run("private", {
      containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", secret: { secretName: "private" } }],
    });
    const uid = pod.metadata?.uid ?? "";
    const path = join(cluster.agent.rootDir, "pods", uid, "volumes/kubernetes.io~secret/v");
    assert.equal(await readFile(join(path, "key"), "utf8"), secretText);
    const asNobody = (program: string, ...args: string[]): string =>
      spawnSync(program, args, { uid: 65534, gid: 65534, encoding: "utf8" }).stderr;
    assert.match(asNobody("cat", join(path, "key")), /Permission denied/);
    assert.match(asNobody("ls", path), /Permission denied/);
    assert.match(await volumes.sh(pod, "grep ' /v ' /proc/mounts"), /^tmpfs \/v tmpfs ro/);
    await volumes.end("private", pod);
  });

  for (const [name, path] of [
    ["out-of-the-volume", "../../../../outside/planted"],
    ["in-place-of-the-link", "..data"],
  ] as const) {
    test(`path traversal: an item ${name}`, async () => {
      const spec = {
        containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
        volumes: [{ name: "v", downwardAPI: { items: [{ path, fieldRef: { fieldPath: "metadata.name" } }] } }],
      };
      // The API server is the first to refuse; a node does not rely on it, so the manifest comes as a file as well.
      await assert.rejects(cluster.create(name, spec), /volumes\[0\]\.downwardAPI\S*path: Invalid value: .*'\.\.'/);
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
      await cluster.agent.applyText(name, JSON.stringify(pod));
      const lines = async (): Promise<readonly string[]> =>
        (await cluster.agent.log()).split("\n").filter((line) => line.includes(name));
      await eventually(
        async () => (await lines()).some((line) => /must not (contain|start with) '\.\.'/.test(line)),
        "refused",
        60_000,
      );
      await cluster.agent.remove(name);
      await unharmed();
    });
  }

  test("CVE-2024-10220, CVE-2025-1767: repositories are not cloned for pods", async () => {
    await cluster.create("clones", {
      containers: [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v" }] })],
      volumes: [{ name: "v", gitRepo: { repository: `/${outside}`, directory: "x" } }],
    });
    assert.equal(
      await volumes.event("clones", "FailedMount"),
      'MountVolume.NewMounter initialization failed for volume "v" : git-repo volume plugin has been disabled; ' +
        "if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`",
    );
    await cluster.delete("clones", 0);
    await cluster.untilGone("clones");
  });

  test("CVE-2020-8563 to 8566, CVE-2023-2878: no secret and no token is in the log or in events, at any verbosity", async () => {
    const registry = join(cluster.agent.rootDir, "plugins_registry");
    const driver = new TestCsiDriver(join(volumes.containerd.stateDir, "csi"), registry, { abilities: [] });
    const csiDriver = {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: driver.name },
      spec: { volumeLifecycleModes: ["Ephemeral"], attachRequired: false, tokenRequests: [{ audience: "vault" }] },
    };
    await cluster.admin.create(resources.csiDrivers, {}, csiDriver, soon());
    await driver.start();
    try {
      await eventually(async () => driver.statuses.length > 0, "the driver is registered", 60_000);
      await cluster.create("talks", {
        containers: [
          volumes.main({
            env: [{ name: "KEY", valueFrom: { secretKeyRef: { name: "private", key: "key" } } }],
            envFrom: [{ secretRef: { name: "private" } }],
            volumeMounts: [
              { name: "csi", mountPath: "/csi" },
              { name: "all", mountPath: "/all" },
            ],
          }),
        ],
        volumes: [
          { name: "csi", csi: { driver: driver.name, nodePublishSecretRef: { name: "private" } } },
          {
            name: "all",
            projected: {
              sources: [
                { secret: { name: "private" } },
                { serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 600 } },
              ],
            },
          },
        ],
      });
      const pod = await cluster.until("talks", "ready", isReady);
      const token = await volumes.sh(pod, "cat /all/token");
      const call = driver.lastCall("NodePublishVolume");
      assert.deepEqual(call["secrets"], { key: secretText });
      const context = call["volumeContext"] as Record<string, string>;
      const tokens = JSON.parse(context["csi.storage.k8s.io/serviceAccount.tokens"] ?? "{}");
      // A driver that fails must not make us tell what we gave it either.
      await volumes.end("talks", pod);
      const log = await cluster.agent.log();
      const { items } = await cluster.admin.list(resources.events, { namespace }, {}, soon());
      const told = log + JSON.stringify(items);
      const forms = (text: string): readonly string[] => [text, Buffer.from(text).toString("base64").slice(0, -4)];
      for (const text of [...forms(secretText), ...forms(token), ...forms(String(tokens.vault.token))]) {
        assert.ok(text.length > 10 && !told.includes(text), `${text} was told`);
      }
    } finally {
      await driver.stop();
    }
  });
});
