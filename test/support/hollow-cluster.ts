import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeRuntime, serveRuntime } from "../../src/beside/hollow/index.ts";
import { type LocalApi, startLocalApi } from "../../src/beside/localapi/index.ts";
import { CgroupDriver } from "../../src/connections/cri/index.ts";
import {
  Informer,
  type KubeClient,
  KubeClients,
  parseKubeconfig,
  resources,
  withoutManagedFields,
} from "../../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { Pod, PodSpec } from "../../src/ground/model/index.ts";
import { type Daemon, DaemonHome, type DaemonOptions } from "./daemon.ts";
import { soon } from "./until.ts";

const nodeName = "hollow";

/** A local API server, the simulated runtime, and the built agent as a process of its own between them. */
export class HollowCluster implements AsyncDisposable {
  readonly daemon: Daemon;
  readonly runtime: FakeRuntime;
  readonly admin: KubeClient;
  /** The pods of the API as a watcher sees them. */
  readonly pods: Informer<Pod>;
  /** Requests of the node so far, as "GET /api/v1/pods" with what repeats. */
  readonly requests: string[];
  readonly #stop: () => Promise<void>;

  private constructor(
    parts: Pick<HollowCluster, "daemon" | "runtime" | "admin" | "pods" | "requests">,
    stop: () => Promise<void>,
  ) {
    this.daemon = parts.daemon;
    this.runtime = parts.runtime;
    this.admin = parts.admin;
    this.pods = parts.pods;
    this.requests = parts.requests;
    this.#stop = stop;
  }

  static async start(options: DaemonOptions = {}): Promise<HollowCluster> {
    const home = await DaemonHome.create();
    const scope = new TaskScope();
    const runtime = new FakeRuntime({ clock: systemClock, events: "offered", cgroupDriver: CgroupDriver.CGROUPFS });
    runtime.imageStore.preload("busybox:1");
    const served = await serveRuntime({ runtime: runtime.runtime, images: runtime.images }, home.runtimeSocket);
    const requests: string[] = [];
    const api: LocalApi = await startLocalApi({
      listen: { host: "127.0.0.1", port: 0 },
      clock: systemClock,
      log: silentLogger,
      scope,
      onRequest: ({ user, method, path, isWatch }) => {
        if (user === `system:node:${nodeName}`) requests.push(`${isWatch ? "WATCH" : method} ${path}`);
      },
    });
    const kubeconfig = join(home.directory, "kubeconfig");
    writeFileSync(kubeconfig, await api.nodeKubeconfig(nodeName));
    const limits = { qps: 1_000, burst: 1_000 };
    const clients = new KubeClients(
      await parseKubeconfig(await api.adminKubeconfig(), "admin"),
      { userAgent: "test", main: limits, events: limits, heartbeatTimeoutMs: 10_000 },
      { clock: systemClock, log: silentLogger, environment: {} },
    );
    const pods = new Informer<Pod>(
      { resource: resources.pods, keep: withoutManagedFields },
      { client: clients.main, clock: systemClock, log: silentLogger, random: Math.random },
    );
    scope.spawn("watcher", (signal) => pods.run(signal));
    await pods.synced(scope.signal);
    const args = [`--kubeconfig=${kubeconfig}`, `--hostname-override=${nodeName}`, ...(options.args ?? [])];
    const daemon = home.start({ ...options, args });
    return new HollowCluster({ daemon, runtime, admin: clients.main, pods, requests }, async () => {
      await home[Symbol.asyncDispose]();
      clients[Symbol.dispose]();
      await served[Symbol.asyncDispose]();
      await api.stop();
      await scope.stop();
    });
  }

  async create(name: string, spec: Partial<PodSpec> = {}): Promise<void> {
    const containers = [{ name: "main", image: "busybox:1" }];
    const metadata = { name, namespace: "default" };
    const pod: Pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { nodeName, containers, ...spec } };
    await this.admin.create(resources.pods, { namespace: "default" }, pod, soon());
  }

  async delete(name: string): Promise<void> {
    await this.admin.delete(resources.pods, { namespace: "default", name }, {}, soon());
  }

  /** Resolves when the watcher sees what is wanted. */
  async until(condition: (pods: readonly Pod[]) => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (!condition(this.pods.list())) return;
        stop();
        resolve();
      };
      const stop = this.pods.onChange(check);
      check();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }
}
