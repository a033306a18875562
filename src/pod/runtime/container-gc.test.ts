import assert from "node:assert/strict";
import { access, lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import {
  Container,
  ContainerState,
  ContainerStatus,
  CriError,
  PodSandbox,
  PodSandboxState,
} from "../../connections/cri/index.ts";
import { type Logger, silentLogger } from "../../ground/base/index.ts";
import type { ContainerId, ObservedContainer, ObservedPod, PodUid } from "../../ground/model/index.ts";
import { ContainerGc, type ContainerGcPorts, type ContainerGcSettings } from "./container-gc.ts";
import { runtimeLabels } from "./mapping/index.ts";

const { signal } = new AbortController();
const states = {
  created: ContainerState.CONTAINER_CREATED,
  running: ContainerState.CONTAINER_RUNNING,
  exited: ContainerState.CONTAINER_EXITED,
  unknown: ContainerState.CONTAINER_UNKNOWN,
};

/** A runtime that holds containers and sandboxes, and removes them as containerd does. */
class Runtime {
  readonly containers = new Map<string, Container & { logPath: string }>();
  readonly sandboxes = new Map<string, PodSandbox>();
  readonly calls: string[] = [];
  readonly broken = new Set<string>();

  readonly ports: ContainerGcPorts["runtime"] = {
    listContainers: async () => {
      this.#call("listContainers");
      return { containers: [...this.containers.values()] };
    },
    listPodSandbox: async () => {
      this.#call("listPodSandbox");
      return { items: [...this.sandboxes.values()] };
    },
    containerStatus: async ({ containerId }) => {
      this.#call("containerStatus", containerId);
      const container = this.containers.get(containerId);
      if (container === undefined) throw new CriError("NotFound", "containerStatus", `no ${containerId}`);
      const { id, metadata, state, createdAt, logPath } = container;
      return { status: { ...emptyStatus(), id, metadata, state, createdAt, logPath }, info: {} };
    },
    stopContainer: async ({ containerId, timeout }) => {
      this.#call("stopContainer", `${containerId} ${timeout}`);
      return {};
    },
    removeContainer: async ({ containerId }) => {
      this.#call("removeContainer", containerId);
      this.containers.delete(containerId);
      return {};
    },
    stopPodSandbox: async ({ podSandboxId }) => {
      this.#call("stopPodSandbox", podSandboxId);
      return {};
    },
    removePodSandbox: async ({ podSandboxId }) => {
      this.#call("removePodSandbox", podSandboxId);
      this.sandboxes.delete(podSandboxId);
      return {};
    },
  };

  #call(operation: string, subject = ""): void {
    this.calls.push(subject === "" ? operation : `${operation} ${subject}`);
    if (this.broken.has(operation) || this.broken.has(`${operation} ${subject}`)) {
      throw new CriError("Unknown", operation, `${operation} broke`);
    }
  }
}

function emptyStatus(): ContainerStatus {
  return ContainerStatus.decode(new Uint8Array());
}

class Node implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly runtime = new Runtime();
  readonly events: string[] = [];
  readonly warnings: string[] = [];
  readonly over = new Set<string>();
  readonly stopped = new Set<string>();
  sourcesReady = true;
  readonly root: string;
  readonly gc: ContainerGc;

  private constructor(root: string, settings: Partial<ContainerGcSettings>) {
    this.root = root;
    const log: Logger = { ...silentLogger, warn: (message) => this.warnings.push(message) };
    this.gc = new ContainerGc(
      {
        minimumAgeMs: 0,
        maxPerContainer: 1,
        maxInAll: -1,
        podLogsDir: join(root, "pods"),
        legacyDir: join(root, "containers"),
        ...settings,
      },
      {
        runtime: this.runtime.ports,
        clock: this.clock,
        log,
        recordNodeEvent: ({ type, reason, message }) => this.events.push(`${type} ${reason} ${message}`),
        allSourcesReady: () => this.sourcesReady,
        mayRemoveContent: (uid) => this.over.has(uid),
        mayRemoveRuntime: (uid) => this.stopped.has(uid),
      },
    );
  }

  static async create(settings: Partial<ContainerGcSettings> = {}): Promise<Node> {
    const root = await mkdtemp(join(tmpdir(), "container-gc-"));
    await mkdir(join(root, "pods"));
    await mkdir(join(root, "containers"));
    return new Node(root, settings);
  }

  async sandbox(id: string, pod: string, state: "ready" | "notReady", ageMs = 600_000): Promise<void> {
    this.runtime.sandboxes.set(id, {
      ...PodSandbox.decode(new Uint8Array()),
      id,
      metadata: { name: pod, uid: pod, namespace: "ns", attempt: 0 },
      state: state === "ready" ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY,
      createdAt: this.#nanoseconds(ageMs),
    });
  }

  /** A container `pod/name#attempt` with its log and link on disk. */
  async container(text: string, state: keyof typeof states, ageMs = 600_000): Promise<string> {
    const [, pod = "", name = "", attempt = ""] = /^(\w+)\/(\w+)#(\d+)$/.exec(text) ?? [];
    const id = `${pod}${name}${attempt}id`;
    const logPath = join(this.root, "pods", `ns_${pod}_${pod}`, name, `${attempt}.log`);
    this.runtime.containers.set(id, {
      ...Container.decode(new Uint8Array()),
      id,
      podSandboxId: `sandbox-${pod}`,
      metadata: { name, attempt: Number(attempt) },
      state: states[state],
      createdAt: this.#nanoseconds(ageMs),
      labels: { [runtimeLabels.podUid]: pod, [runtimeLabels.containerName]: name },
      logPath,
    });
    await this.write(logPath);
    await symlink(logPath, this.link(text));
    return id;
  }

  async write(path: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "log\n");
  }

  link(text: string): string {
    const [, pod = "", name = "", attempt = ""] = /^(\w+)\/(\w+)#(\d+)$/.exec(text) ?? [];
    return join(this.root, "containers", `${pod}_ns_${name}-${pod}${name}${attempt}id.log`);
  }

  get containers(): readonly string[] {
    return [...this.runtime.containers.keys()].sort();
  }

  get sandboxes(): readonly string[] {
    return [...this.runtime.sandboxes.keys()].sort();
  }

  /** Every file below the root, relative. */
  async files(): Promise<readonly string[]> {
    const entries = await readdir(this.root, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.root.length + 1))
      .sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true });
  }

  #nanoseconds(ageMs: number): bigint {
    return BigInt(this.clock.now() - ageMs) * 1_000_000n;
  }
}

test("older dead instances go with all their logs and their link; the newest and the running stay", async () => {
  await using node = await Node.create();
  await node.sandbox("sandbox-p", "p", "ready");
  await node.container("p/web#0", "exited", 3_000);
  await node.container("p/web#1", "exited", 2_000);
  await node.container("p/web#2", "running", 1_000);
  await node.write(join(node.root, "pods/ns_p_p/web/0.log.20260101-000000.gz"));
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, ["pweb1id", "pweb2id"]);
  assert.deepEqual(await node.files(), [
    "containers/p_ns_web-pweb1id.log",
    "containers/p_ns_web-pweb2id.log",
    "pods/ns_p_p/web/1.log",
    "pods/ns_p_p/web/2.log",
  ]);
  assert.deepEqual(node.sandboxes, ["sandbox-p"]);
  assert.deepEqual(node.events, []);
});

test("a dead container younger than the minimum age stays", async () => {
  await using node = await Node.create({ minimumAgeMs: 60_000, maxPerContainer: 0 });
  await node.container("p/web#0", "exited", 59_999);
  await node.container("p/log#0", "exited", 60_000);
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, ["pweb0id"]);
});

test("one just made and not started yet is not taken for dead; one left behind is", async () => {
  await using node = await Node.create({ maxPerContainer: 0 });
  await node.container("p/web#0", "created", 5_000);
  await node.container("p/log#0", "created", 60_000);
  await node.container("q/web#0", "created", 5_000);
  node.over.add("q");
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, ["pweb0id"]);
});

test("a pod that is gone loses containers, sandbox and logs in one round", async () => {
  await using node = await Node.create();
  await node.sandbox("sandbox-gone", "gone", "notReady");
  await node.container("gone/web#0", "exited");
  await node.container("gone/web#1", "exited");
  node.over.add("gone");
  await node.gc.collect(signal);
  assert.deepEqual([...node.containers, ...node.sandboxes, ...(await node.files())], []);
  assert.deepEqual(await readdir(join(node.root, "pods")), []);
  const order = node.runtime.calls.filter((call) => call.includes("sandbox-gone"));
  assert.deepEqual(order, ["stopPodSandbox sandbox-gone", "removePodSandbox sandbox-gone"]);
});

test("before all sources are ready no pod counts as gone, but limits hold", async () => {
  await using node = await Node.create();
  node.sourcesReady = false;
  node.over.add("gone");
  await node.container("gone/web#0", "exited", 2_000);
  await node.container("gone/web#1", "exited", 1_000);
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, ["goneweb1id"]);
  await access(join(node.root, "pods", "ns_gone_gone"));
});

test("eviction also takes what is left of pods that stopped but exist; their logs stay", async () => {
  await using node = await Node.create();
  await node.sandbox("sandbox-done", "done", "notReady");
  await node.container("done/web#0", "exited");
  await node.container("live/web#0", "exited");
  node.stopped.add("done");
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, ["doneweb0id", "liveweb0id"]);
  await node.gc.deleteAllUnused(signal);
  assert.deepEqual(node.containers, ["liveweb0id"]);
  assert.deepEqual(node.sandboxes, []);
  assert.deepEqual(await readdir(join(node.root, "pods")), ["ns_done_done", "ns_live_live"]);
});

test("sandboxes: the newest of an existing pod stays, others without containers go, ready ones never", async () => {
  await using node = await Node.create();
  await node.sandbox("sandbox-p", "p", "notReady", 4_000);
  await node.container("p/web#0", "exited");
  await node.sandbox("old", "p", "notReady", 3_000);
  await node.sandbox("ready", "p", "ready", 2_000);
  await node.sandbox("newest", "p", "notReady", 1_000);
  await node.gc.collect(signal);
  assert.deepEqual(node.sandboxes, ["newest", "ready", "sandbox-p"]);
});

test("a sandbox that cannot be stopped is not removed", async () => {
  await using node = await Node.create();
  await node.sandbox("stuck", "gone", "notReady");
  await node.sandbox("fine", "gone", "notReady");
  node.over.add("gone");
  node.runtime.broken.add("stopPodSandbox stuck");
  await node.gc.collect(signal);
  assert.deepEqual(node.sandboxes, ["stuck"]);
});

test("a container in unknown state is stopped before it is removed", async () => {
  await using node = await Node.create();
  await node.container("gone/web#0", "unknown");
  node.over.add("gone");
  await node.gc.collect(signal);
  const calls = node.runtime.calls.filter((call) => /^(stop|remove)Container/.test(call));
  assert.deepEqual(calls, ["stopContainer goneweb0id 2", "removeContainer goneweb0id"]);
});

test("a container that cannot be removed keeps its sandbox, not the others", async () => {
  await using node = await Node.create();
  for (const pod of ["stuck", "fine"]) {
    await node.sandbox(`sandbox-${pod}`, pod, "notReady");
    await node.container(`${pod}/web#0`, "exited");
    node.over.add(pod);
  }
  node.runtime.broken.add("removeContainer stuckweb0id");
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, ["stuckweb0id"]);
  assert.deepEqual(node.sandboxes, ["sandbox-stuck"]);
});

test("logs outside of the pod logs are never deleted, neither by path nor through a link", async () => {
  await using node = await Node.create();
  const byPath = await node.container("gone/path#0", "exited");
  const byLink = await node.container("gone/link#0", "exited");
  node.over.add("gone");
  const precious = join(node.root, "precious");
  for (const name of ["0.log", "0.log.1"]) await node.write(join(precious, name));
  await symlink(precious, join(node.root, "pods", "ns_gone_gone", "way-out"));
  const setLog = (id: string, logPath: string): void => {
    const container = node.runtime.containers.get(id);
    assert.ok(container !== undefined);
    container.logPath = logPath;
  };
  setLog(byPath, join(node.root, "pods", "..", "precious", "0.log"));
  setLog(byLink, join(node.root, "pods", "ns_gone_gone", "way-out", "0.log"));
  await node.gc.collect(signal);
  assert.deepEqual(node.containers, []);
  assert.deepEqual(await readdir(precious), ["0.log", "0.log.1"]);
  assert.equal(node.warnings.length, 2);
});

test("links to logs that are gone are deleted, unless the container has not ended", async () => {
  await using node = await Node.create();
  await node.container("p/live#0", "running");
  await node.container("p/dead#0", "exited");
  for (const file of ["live/0.log", "dead/0.log"]) await rm(join(node.root, "pods/ns_p_p", file));
  const legacy = (name: string) => join(node.root, "containers", name);
  await symlink("/nowhere", legacy("x_ns_c-unknownid.log"));
  await symlink("/nowhere", legacy("x_ns_c-cut.log"));
  await symlink("/nowhere", legacy("other-tool.txt"));
  await writeFile(legacy("a-file-abcdefgh.log"), "");
  await node.gc.collect(signal);
  assert.deepEqual(await readdir(join(node.root, "containers")), [
    "a-file-abcdefgh.log",
    "other-tool.txt",
    "p_ns_live-plive0id.log",
  ]);
  assert.ok((await lstat(node.link("p/live#0"))).isSymbolicLink());
});

test("while the runtime does not answer about a container its link stays", async () => {
  await using node = await Node.create();
  await node.container("p/dead#0", "exited");
  await rm(join(node.root, "pods/ns_p_p/dead/0.log"));
  node.runtime.broken.add("containerStatus");
  await node.gc.collect(signal);
  assert.ok((await lstat(node.link("p/dead#0"))).isSymbolicLink());
  assert.deepEqual(node.events, ["Warning ContainerGCFailed containerStatus broke"]);
});

test("a runtime that cannot list fails the round with an event; logs of gone pods go nevertheless", async () => {
  await using node = await Node.create();
  await node.container("gone/web#0", "exited");
  node.over.add("gone");
  node.runtime.broken.add("listContainers");
  await node.gc.collect(signal);
  assert.deepEqual(node.events, ["Warning ContainerGCFailed listContainers broke"]);
  assert.deepEqual(await readdir(join(node.root, "pods")), []);
});

test("pace: soon after the start, a minute after work, failures or changes, five on a quiet node; two calls when there is nothing to do", async () => {
  await using node = await Node.create();
  const due = () => node.gc.nextCheckAt - node.clock.monotonic();
  assert.equal(due(), 5_000);
  await node.gc.collect(signal);
  assert.equal(due(), 300_000);
  assert.equal(node.runtime.calls.length, 2);
  await node.clock.advance(200_000);
  node.gc.noteChange();
  assert.equal(due(), 60_000);
  await node.clock.advance(50_000);
  node.gc.noteChange();
  assert.equal(due(), 10_000, "a change never puts the round off");
  node.over.add("gone");
  await node.container("gone/web#0", "exited");
  await node.gc.collect(signal);
  assert.equal(due(), 60_000);
});

function observed(node: Node, pod: string): ObservedPod {
  const containers = [...node.runtime.containers.values()]
    .filter(({ labels }) => labels[runtimeLabels.podUid] === pod)
    .map(({ id, metadata, state, createdAt, logPath }) => ({
      id: id as ContainerId,
      name: metadata?.name ?? "",
      state: state === ContainerState.CONTAINER_EXITED ? "exited" : "running",
      createdAt: Number(createdAt / 1_000_000n),
      logPath,
      annotations: { terminationGraceSeconds: undefined },
    }));
  return { uid: pod as PodUid, containers: containers as unknown as readonly ObservedContainer[] } as ObservedPod;
}

for (const { maxPerContainer, over, left } of [
  { maxPerContainer: 1, over: false, left: ["plog0id", "pweb2id", "pweb3id"] },
  { maxPerContainer: 0, over: false, left: ["plog0id", "pweb2id", "pweb3id"] },
  { maxPerContainer: 2, over: false, left: ["plog0id", "pweb1id", "pweb2id", "pweb3id"] },
  { maxPerContainer: 1, over: true, left: ["pweb3id"] },
]) {
  test(`after a container ended: keep ${maxPerContainer}${over ? ", pod over" : ""}`, async () => {
    await using node = await Node.create({ maxPerContainer });
    for (const [attempt, state] of ["exited", "exited", "exited", "running"].entries()) {
      await node.container(`p/web#${attempt}`, state === "exited" ? "exited" : "running", 10_000 - attempt);
    }
    await node.container("p/log#0", "exited");
    if (over) node.over.add("p");
    await node.gc.pruneDead(observed(node, "p"), signal);
    assert.deepEqual(node.containers, left);
    assert.deepEqual(
      node.runtime.calls.filter((call) => !call.startsWith("removeContainer")),
      [],
    );
  });
}
