// How volumes are mounted, seen from inside containers: propagation, read-only, host paths by type, huge pages.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { loadSyscalls, mountFlags, readMounts } from "../../src/connections/host/index.ts";
import type { Container, Pod, PodSpec, Volume, VolumeMount } from "../../src/ground/model/index.ts";
import { eventually, isReady } from "../support/agent.ts";
import { goWithout } from "../support/missing.ts";
import { statusOf, TestNode } from "../support/test-node.ts";

const hugePageCount = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

describe("how volumes are mounted", () => {
  let node: TestNode;
  before(async () => {
    node = await TestNode.start({ featureGates: { ImageVolume: true } });
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** What a script prints in the container, problems included. */
  const said = (pod: Pod, container: string, script: string): Promise<string> =>
    node.sh(pod, container, `(${script}) 2>&1; true`);

  function user(name: string, mounts: readonly VolumeMount[], more: Partial<Container> = {}): Container {
    return node.server(name, { volumeMounts: [...mounts], ...more });
  }

  async function run(name: string, spec: Partial<PodSpec>): Promise<Pod> {
    await node.agent.apply(name, spec);
    return node.agent.until(name, "ready", isReady);
  }

  async function end(name: string): Promise<void> {
    await node.agent.remove(name);
    await node.agent.untilGone(name);
  }

  /** A directory of the host on a mount of its own that tells its peers what is mounted inside it. */
  async function sharedDirectory(name: string): Promise<{ path: string; remove: () => Promise<void> }> {
    const path = join(node.containerd.stateDir, name);
    await mkdir(path, { recursive: true });
    const calls = await loadSyscalls();
    calls.mount("tmpfs", path, "tmpfs", 0, "size=1m");
    calls.mount("none", path, "", mountFlags.shared);
    return {
      path,
      async remove() {
        const inside = (await readMounts()).map(({ mountPoint }) => mountPoint).filter((at) => at.startsWith(path));
        for (const point of inside.toReversed()) await calls.unmount(point, 0);
      },
    };
  }

  test("propagation: what the host mounts later, and what a privileged container mounts", async () => {
    const host = await sharedDirectory("propagated");
    const calls = await loadSyscalls();
    try {
      for (const name of ["by-host", "by-pod"]) await mkdir(join(host.path, name));
      const mount = { name: "host", mountPath: "/host" };
      const pod = await run("propagation", {
        containers: [
          user("alone", [mount]),
          user("slave", [{ ...mount, mountPropagation: "HostToContainer" }]),
          user("peer", [{ ...mount, mountPropagation: "Bidirectional" }], { securityContext: { privileged: true } }),
        ],
        volumes: [{ name: "host", hostPath: { path: host.path } }],
      });
      calls.mount("tmpfs", join(host.path, "by-host"), "tmpfs", 0, "size=1m");
      await writeFile(join(host.path, "by-host/file"), "from the host");
      const look = "cat /host/by-host/file";
      assert.match(await said(pod, "alone", look), /No such file/);
      assert.equal(await said(pod, "slave", look), "from the host");
      assert.equal(await said(pod, "peer", look), "from the host");

      await node.sh(pod, "peer", "mount -t tmpfs tmpfs /host/by-pod && echo -n from the pod > /host/by-pod/file");
      assert.equal(await readFile(join(host.path, "by-pod/file"), "utf8"), "from the pod");
      assert.equal(await said(pod, "slave", "cat /host/by-pod/file"), "from the pod");
      assert.match(await said(pod, "alone", "cat /host/by-pod/file"), /No such file/);
      // A container that may only listen has nothing to tell, whatever it may do inside.
      assert.match(await said(pod, "slave", "mount -t tmpfs tmpfs /host/by-host"), /denied|not permitted/);
      await end("propagation");
      assert.equal(await readFile(join(host.path, "by-pod/file"), "utf8"), "from the pod", "what the host has stays");
    } finally {
      await host.remove();
    }
  });

  test("read-only: the volume is; what is mounted inside it stays writable unless all of it is asked for", async () => {
    const host = await sharedDirectory("read-only");
    const calls = await loadSyscalls();
    try {
      await mkdir(join(host.path, "inside"));
      calls.mount("tmpfs", join(host.path, "inside"), "tmpfs", 0, "size=1m");
      const mount = { name: "host", mountPath: "/host", readOnly: true };
      const volumes = [{ name: "host", hostPath: { path: host.path } }];
      const pod = await run("reader", {
        containers: [
          user("plain", [mount]),
          // This runtime does not say that it can, so this is as good as plain.
          user("if-possible", [{ ...mount, recursiveReadOnly: "IfPossible" }]),
        ],
        volumes,
      });
      for (const container of ["plain", "if-possible"]) {
        assert.match(await said(pod, container, "touch /host/x"), /Read-only file system/);
        assert.equal(await said(pod, container, `touch /host/inside/${container} && echo written`), "written");
      }
      await end("reader");

      await node.agent.apply("strict", {
        containers: [user("main", [{ ...mount, recursiveReadOnly: "Enabled" }])],
        volumes,
      });
      const refused = await node.agent.until("strict", "refused", isRefused);
      assert.equal(
        statusOf(refused, "main").state?.waiting?.message,
        'failed to resolve recursive read-only mode: volume "host" requested recursive read-only mode, but it is not supported by the runtime',
      );
      await end("strict");
    } finally {
      await host.remove();
    }
  });

  test("host paths: each type as it is, and refused where it is not", async () => {
    const root = join(node.containerd.stateDir, "types");
    await mkdir(join(root, "dir"), { recursive: true });
    await writeFile(join(root, "file"), "content");
    execFileSync("mknod", [join(root, "char"), "c", "1", "3"]);
    execFileSync("mknod", [join(root, "block"), "b", "7", "200"]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(root, "socket"), resolve));
    try {
      const things = [
        ["dir", "Directory", "directory"],
        ["new/dir", "DirectoryOrCreate", "directory"],
        ["file", "File", "regular file"],
        ["new-file", "FileOrCreate", "regular file"],
        ["socket", "Socket", "socket"],
        ["char", "CharDevice", "character special file"],
        ["block", "BlockDevice", "block special file"],
        ["dir", "", "directory"],
      ] as const;
      const volumes: Volume[] = things.map(([path, type], index) => ({
        name: `v${index}`,
        hostPath: { path: join(root, path), type },
      }));
      const mounts = volumes.map(({ name }) => ({ name, mountPath: `/host/${name}` }));
      const pod = await run("typed", { containers: [user("main", mounts)], volumes });
      const found = await node.sh(pod, "main", "cd /host && stat -c %F $(ls | sort)");
      assert.deepEqual(
        found.replaceAll("regular empty file", "regular file").split("\n"),
        things.map(([, , kind]) => kind),
      );
      assert.equal((await stat(join(root, "new/dir"))).mode & 0o7777, 0o755);
      assert.equal((await stat(join(root, "new-file"))).mode & 0o7777, 0o644);
      await end("typed");
      assert.equal(await readFile(join(root, "file"), "utf8"), "content", "teardown leaves the host's paths alone");

      for (const [type, path, noun] of [
        ["Directory", "absent", "directory"],
        ["DirectoryOrCreate", "file", "directory"],
        ["File", "dir", "file"],
        ["FileOrCreate", "dir", "file"],
        ["Socket", "file", "socket file"],
        ["CharDevice", "block", "character device"],
        ["BlockDevice", "char", "block device"],
      ] as const) {
        const name = `wrong-${type.toLowerCase()}`;
        await node.agent.apply(name, {
          containers: [user("main", [{ name: "v", mountPath: "/v" }])],
          volumes: [{ name: "v", hostPath: { path: join(root, path), type } }],
        });
        const problem = `hostPath type check failed: ${join(root, path)} is not a ${noun}`;
        await node.untilLogged("FailedMount", 'MountVolume.SetUp failed for volume \\"v\\" : ', problem);
        await end(name);
      }
      assert.ok(!(await readdir(root)).includes("absent"));
    } finally {
      server.close();
    }
  });

  test("memory: no more than the pod's limit, and only owners remove files", async () => {
    const pod = await run("memory", {
      containers: [
        user("main", [{ name: "v", mountPath: "/v" }], {
          resources: { limits: { memory: "64Mi" } },
          securityContext: { runAsUser: 1000 },
        }),
        user("other", [{ name: "v", mountPath: "/v" }], {
          resources: { limits: { memory: "64Mi" } },
          securityContext: { runAsUser: 2000 },
        }),
      ],
      volumes: [{ name: "v", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } }],
    });
    assert.equal(
      await node.sh(pod, "main", "stat -c '%a %u' /v; df -k /v | awk 'END {print $2}'"),
      `1777 0\n${128 * 1024}`,
    );
    await node.sh(pod, "main", "echo mine > /v/file");
    assert.equal(await node.sh(pod, "other", "cat /v/file"), "mine");
    assert.match(await said(pod, "other", "rm -f /v/file"), /not permitted/);
    await end("memory");
  });

  test("huge pages, where the kernel has them to give", async (t) => {
    const before = await readFile(hugePageCount, "utf8").catch(() => undefined);
    if (before === undefined) return goWithout(t, "this kernel has no huge pages of 2 MiB");
    await writeFile(hugePageCount, String(Number(before) + 4)).catch(() => {});
    try {
      if (Number(await readFile(hugePageCount, "utf8")) < Number(before) + 4) {
        return goWithout(t, "this machine gives no huge pages");
      }
      const pod = await run("huge", {
        containers: [
          user("main", [{ name: "v", mountPath: "/v" }], {
            resources: { limits: { "hugepages-2Mi": "4Mi", memory: "64Mi", cpu: "100m" } },
          }),
        ],
        volumes: [{ name: "v", emptyDir: { medium: "HugePages-2Mi" } }],
      });
      assert.match(await node.sh(pod, "main", "grep ' /v ' /proc/mounts"), /^nodev \/v hugetlbfs rw.*pagesize=2M/);
      await end("huge");
    } finally {
      await writeFile(hugePageCount, before).catch(() => {});
    }
  });

  test("an image as a volume: this runtime can't, and the pod says so", async (t) => {
    const { runtimeVersion } = await node.cri.runtime.version({ version: "v1" });
    if (!/^v?(1|2\.0)\./.test(runtimeVersion)) return t.skip(`containerd ${runtimeVersion} mounts images`);
    await node.agent.apply("image", {
      containers: [user("main", [{ name: "v", mountPath: "/v", subPath: "bin" }])],
      volumes: [{ name: "v", image: { reference: node.containerd.images.busybox, pullPolicy: "Never" } }],
    });
    const refused = await node.agent.until("image", "refused", isRefused);
    assert.match(
      statusOf(refused, "main").state?.waiting?.message ?? "",
      /^volume "v" is an image, which containerd [\w.~+-]+ can't mount; containerd 2\.1 or newer can$/,
    );
    await end("image");
  });

  test("nothing of all that is left", async () => {
    await eventually(
      async () => (await readdir(join(node.agent.rootDir, "pods"))).length === 0,
      "no pod directories are left",
      60_000,
    );
    const left = (await readMounts()).filter(({ mountPoint }) => mountPoint.startsWith(`${node.agent.rootDir}/pods/`));
    assert.deepEqual(left, []);
  });
});

function isRefused({ status }: Pod): boolean {
  return status?.containerStatuses?.[0]?.state?.waiting?.reason === "CreateContainerConfigError";
}
