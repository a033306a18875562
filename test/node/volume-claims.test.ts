// Claims, block devices and objects of a cluster, as a container sees them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, chown, mkdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import type { ApiCluster } from "../support/api-cluster.ts";
import { goWithout } from "../support/missing.ts";
import { soon } from "../support/until.ts";
import { VolumeCluster } from "../support/volume-cluster.ts";

const namespace = "default";
const here = {
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "disk", operator: "In", values: ["here"] }] }] },
};

describe("claims and objects of a cluster on a real node", () => {
  let volumes: VolumeCluster;
  let cluster: ApiCluster;
  before(async () => {
    volumes = await VolumeCluster.start();
    cluster = volumes.cluster;
  });
  after(() => volumes?.[Symbol.asyncDispose]());

  async function hostDirectory(name: string): Promise<string> {
    const path = join(volumes.containerd.stateDir, name);
    await mkdir(path);
    return path;
  }

  async function object(kind: "ConfigMap" | "Secret", name: string, rest: object): Promise<void> {
    const resource = kind === "ConfigMap" ? resources.configMaps : resources.secrets;
    const body = { apiVersion: "v1", kind, metadata: { name, namespace }, ...rest };
    await cluster.admin.create<object>(resource, { namespace }, body, soon());
  }

  const mounted = (more: object = {}) => [volumes.main({ volumeMounts: [{ name: "v", mountPath: "/v", ...more }] })];
  const claimed = (claimName: string, more: object = {}) => [
    { name: "v", persistentVolumeClaim: { claimName, ...more } },
  ];

  test("a claim on a path of the host: written, kept; read-only for who asked for no more", async () => {
    const path = await hostDirectory("shared-path");
    await volumes.bind("path", { hostPath: { path, type: "Directory" } });
    const writer = await volumes.run("writer", { containers: mounted(), volumes: claimed("path") });
    const reader = await volumes.run("reader", { containers: mounted(), volumes: claimed("path", { readOnly: true }) });
    assert.equal(await volumes.sh(writer, "mkdir /v/part && echo kept > /v/part/file && cat /v/part/file"), "kept");
    assert.equal(await volumes.sh(reader, "cat /v/part/file"), "kept");
    assert.match(await volumes.sh(reader, "touch /v/x"), /Read-only file system/);
    await volumes.end("writer", writer);
    await volumes.end("reader", reader);
    const part = await volumes.run("part", { containers: mounted({ subPath: "part" }), volumes: claimed("path") });
    assert.equal(await volumes.sh(part, "cat /v/file"), "kept");
    await volumes.end("part", part);
    assert.equal(await readFile(join(path, "part/file"), "utf8"), "kept\n");
  });

  test("fsGroup: OnRootMismatch trusts a root that is right, Always walks all of it", async () => {
    const path = await hostDirectory("grouped");
    await writeFile(join(path, "file"), "");
    await chown(path, 0, 4321);
    await chmod(path, 0o2770);
    await volumes.bind("grouped", { local: { path }, nodeAffinity: here });
    const file = async (): Promise<readonly number[]> => {
      const { gid, mode } = await stat(join(path, "file"));
      return [gid, mode & 0o7777];
    };
    for (const [fsGroupChangePolicy, expected] of [
      ["OnRootMismatch", [0, 0o644]],
      ["Always", [4321, 0o664]],
    ] as const) {
      const pod = await volumes.run("grouped", {
        securityContext: { fsGroup: 4321, fsGroupChangePolicy },
        containers: mounted(),
        volumes: claimed("grouped"),
      });
      assert.deepEqual(await file(), expected, fsGroupChangePolicy);
      assert.match(await volumes.sh(pod, "id -G"), /\b4321\b/);
      await volumes.end("grouped", pod);
    }
  });

  test("block mode: the device itself, writable or not, and gone with the pod", async (t) => {
    const disk = join(volumes.containerd.stateDir, "disk.img");
    await writeFile(disk, "");
    await truncate(disk, 4 << 20);
    let device: string;
    try {
      device = execFileSync("losetup", ["--show", "-f", disk], { encoding: "utf8" }).trim();
    } catch (error) {
      return goWithout(t, `this machine gives no loop device: ${String(error)}`);
    }
    try {
      await volumes.bind("disk", { local: { path: device }, volumeMode: "Block", nodeAffinity: here });
      const containers = [volumes.main({ volumeDevices: [{ name: "v", devicePath: "/dev/disk" }] })];
      const pod = await volumes.run("device", { containers, volumes: claimed("disk") });
      assert.equal(await volumes.sh(pod, "stat -c %F /dev/disk"), "block special file");
      await volumes.sh(pod, "echo raw | dd of=/dev/disk conv=fsync 2>/dev/null");
      assert.equal((await readFile(disk)).subarray(0, 4).toString(), "raw\n");
      const map = join(cluster.agent.rootDir, "plugins/kubernetes.io/local-volume/volumeDevices/pv-disk");
      assert.equal(
        await volumes.event("device", "SuccessfulMountVolume"),
        `MapVolume.MapPodDevice succeeded for volume "pv-disk" globalMapPath "${map}"`,
      );
      await volumes.end("device", pod);

      const reader = await volumes.run("looks", { containers, volumes: claimed("disk", { readOnly: true }) });
      assert.equal(await volumes.sh(reader, "head -c 3 /dev/disk"), "raw");
      assert.match(await volumes.sh(reader, "echo x > /dev/disk"), /not permitted|denied/);
      await volumes.end("looks", reader);
      const loops = execFileSync("losetup", ["-n", "-O", "BACK-FILE"], { encoding: "utf8" });
      assert.ok(!loops.includes(cluster.agent.rootDir), loops);

      await cluster.create("mistaken", { containers: mounted(), volumes: claimed("disk") });
      assert.match(
        await volumes.event("mistaken", "FailedMount"),
        /volume v has volumeMode Block, but is specified in volumeMounts$/,
      );
      await cluster.delete("mistaken", 0);
    } finally {
      execFileSync("losetup", ["-d", device]);
    }
  });

  test("a generic ephemeral volume: the pod waits for the claim that is made for it, and takes no other", async () => {
    const path = await hostDirectory("ephemeral");
    const ephemeral = {
      volumeClaimTemplate: {
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, storageClassName: "" },
      },
    };
    const spec = { containers: mounted(), volumes: [{ name: "v", ephemeral }] };
    await volumes.bind("stranger-v", { hostPath: { path } });
    await cluster.create("stranger", spec);
    assert.equal(
      await volumes.event("stranger", "FailedMount"),
      "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: " +
        "error processing PVC default/stranger-v: PVC default/stranger-v was not created for pod default/stranger (pod is not owner)",
    );
    await cluster.delete("stranger", 0);

    const created = await cluster.create("owner", spec);
    assert.match(await volumes.event("owner", "FailedMount"), /persistentvolumeclaims "owner-v" not found/);
    await volumes.bind("owner-v", { hostPath: { path } }, { owner: created });
    const pod = await cluster.until("owner", "ready", isReady);
    await volumes.sh(pod, "echo mine > /v/file");
    assert.equal(await readFile(join(path, "file"), "utf8"), "mine\n");
    await volumes.end("owner", pod);
  });

  test("whoever takes more of the disk than it may is evicted, and says why; others stay", async () => {
    // One that exits with 0 when it is told to end has succeeded, evicted or not, as with the kubelet.
    const limits = { "ephemeral-storage": "2Mi" };
    const fills = (path: string) => `head -c 4000000 /dev/zero >> ${path}; trap 'exit 3' TERM; sleep 1d & wait`;
    const filler = (path: string, more: object = {}) =>
      volumes.main({ command: ["sh", "-c", fills(path)], volumeMounts: [{ name: "v", mountPath: "/v" }], ...more });
    const scratch = (sizeLimit: string) => [{ name: "v", emptyDir: { sizeLimit } }];
    await Promise.all([
      cluster.create("overflows", { containers: [filler("/v/file")], volumes: scratch("1Mi") }),
      // As in CVE-2020-8557: the hosts file is the node's, but the pod writes it.
      cluster.create("hoards", {
        containers: [filler("/etc/hosts", { resources: { limits } })],
        volumes: scratch("1Gi"),
      }),
      cluster.create("fits", { containers: [filler("/v/file")], volumes: scratch("1Gi") }),
    ]);
    for (const [name, message] of [
      ["overflows", 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '],
      ["hoards", "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "],
    ] as const) {
      const { status } = await cluster.until(name, "failed", (pod) => pod.status?.phase === "Failed");
      assert.deepEqual([status?.reason, status?.message], ["Evicted", message]);
      assert.equal(await volumes.event(name, "Evicted"), message);
      assert.ok(!(status?.conditions ?? []).some(({ type }) => type === "DisruptionTarget"));
      await cluster.delete(name, 0);
    }
    const fits = await cluster.until("fits", "ready", isReady);
    await volumes.end("fits", fits);
  });

  test("projected from everything at once: content, modes, items; optional comes later, immutable stays", async () => {
    await object("ConfigMap", "settings", { data: { a: "from the map", b: "not chosen" } });
    await object("Secret", "keys", { stringData: { key: "hush" } });
    await object("ConfigMap", "fixed", { data: { c: "v1" }, immutable: true });
    const pod = await volumes.run("projection", {
      containers: [
        volumes.main({
          resources: { limits: { memory: "32Mi" } },
          volumeMounts: [
            { name: "all", mountPath: "/all" },
            { name: "fixed", mountPath: "/fixed" },
            { name: "late", mountPath: "/late" },
          ],
        }),
      ],
      volumes: [
        {
          name: "all",
          projected: {
            defaultMode: 0o440,
            sources: [
              { configMap: { name: "settings", items: [{ key: "a", path: "deep/a", mode: 0o400 }] } },
              { secret: { name: "keys" } },
              {
                downwardAPI: {
                  items: [
                    { path: "name", fieldRef: { fieldPath: "metadata.name" } },
                    { path: "memory", resourceFieldRef: { containerName: "main", resource: "limits.memory" } },
                  ],
                },
              },
              { serviceAccountToken: { path: "token", expirationSeconds: 600 } },
              { configMap: { name: "absent", optional: true } },
            ],
          },
        },
        { name: "fixed", configMap: { name: "fixed" } },
        { name: "late", configMap: { name: "late", optional: true } },
      ],
    });
    assert.equal(
      await volumes.sh(pod, "cd /all && cat deep/a key name memory | tr '\\n' ' '; ls; stat -Lc %a deep/a key token"),
      `from the maphushprojection${32 << 20}deep\nkey\nmemory\nname\ntoken\n400\n440\n440`,
    );
    assert.match(await volumes.sh(pod, "cat /all/token"), /^[\w-]+\.[\w-]+\.[\w-]+$/);
    assert.equal(await volumes.sh(pod, "stat -c %a /all; ls /late | wc -l"), "1777\n0");

    await object("ConfigMap", "late", { data: { d: "at last" } });
    await eventually(async () => (await volumes.sh(pod, "cat /late/d")) === "at last", "the late map", 30_000);
    // An immutable map can only be replaced, which a pod that has it does not follow.
    await cluster.admin.delete(resources.configMaps, { namespace, name: "fixed" }, {}, soon());
    await object("ConfigMap", "fixed", { data: { c: "v2" } });
    const body = { data: { a: "changed" } };
    await cluster.admin.patch(resources.configMaps, { namespace, name: "settings" }, { type: "merge", body }, soon());
    await eventually(async () => (await volumes.sh(pod, "cat /all/deep/a")) === "changed", "the change", 30_000);
    assert.equal(await volumes.sh(pod, "cat /fixed/c"), "v1");

    // The map goes while the pod has it: the files stay, and an event tells.
    await cluster.admin.delete(resources.configMaps, { namespace, name: "settings" }, {}, soon());
    assert.equal(
      await volumes.event("projection", "FailedMount"),
      'MountVolume.SetUp failed for volume "all" : configmap "settings" not found',
    );
    assert.equal(await volumes.sh(pod, "cat /all/deep/a"), "changed");
    await volumes.end("projection", pod);
  });
});
