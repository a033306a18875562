import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { silentLogger, systemClock, TaskScope } from "../../src/base/index.ts";
import { accessRules } from "../../src/cli/agent-process.ts";
import {
  Informer,
  type KubeClient,
  KubeClients,
  loadKubeconfig,
  resources,
  withoutManagedFields,
} from "../../src/kube/index.ts";
import { type LocalApi, startLocalApi } from "../../src/localapi/index.ts";
import type { IdentifiedPod, Pod, PodSpec } from "../../src/model/index.ts";
import { eventually, TestAgent } from "./agent.ts";
import type { TestContainerd } from "./containerd.ts";
import { Outage } from "./outage.ts";

/** A local API server, the built agent as its only node, and a way between them that can be cut. */
export class ApiCluster implements AsyncDisposable {
  readonly api: LocalApi;
  readonly agent: TestAgent;
  readonly outage: Outage;
  readonly admin: KubeClient;
  readonly adminKubeconfig: string;
  readonly #dispose: () => Promise<void>;

  private constructor(
    parts: Pick<ApiCluster, "api" | "agent" | "outage" | "admin" | "adminKubeconfig">,
    dispose: () => Promise<void>,
  ) {
    this.api = parts.api;
    this.agent = parts.agent;
    this.outage = parts.outage;
    this.admin = parts.admin;
    this.adminKubeconfig = parts.adminKubeconfig;
    this.#dispose = dispose;
  }

  /** A newcomer has only what it takes to ask for a certificate. */
  static async start(
    containerd: TestContainerd,
    config: object = {},
    comesAs: "member" | "newcomer" = "member",
    moreFlags: readonly string[] = [],
  ): Promise<ApiCluster> {
    const scope = new TaskScope();
    const listen = { host: "127.0.0.1", port: 0 };
    const api = await startLocalApi({
      ...{ listen, clock: systemClock, log: silentLogger, scope, kubeletHost: listen.host },
    });
    const outage = await Outage.before(api.url);
    const adminKubeconfig = join(containerd.stateDir, "admin.kubeconfig");
    await writeFile(adminKubeconfig, await api.adminKubeconfig());
    const nodeKubeconfig = join(containerd.stateDir, "node.kubeconfig");
    const bootstrapKubeconfig = join(containerd.stateDir, "bootstrap.kubeconfig");
    await rm(nodeKubeconfig, { force: true });
    const [file, text] =
      comesAs === "member"
        ? [nodeKubeconfig, await api.nodeKubeconfig("test-node")]
        : [bootstrapKubeconfig, api.bootstrapKubeconfig()];
    await writeFile(file, text.replaceAll(api.url, outage.url));
    const flags = [
      `--kubeconfig=${nodeKubeconfig}`,
      ...(comesAs === "newcomer" ? [`--bootstrap-kubeconfig=${bootstrapKubeconfig}`] : []),
    ];
    const limits = { qps: 1000, burst: 1000 };
    const clients = new KubeClients(
      await loadKubeconfig(adminKubeconfig),
      { userAgent: "test", main: limits, events: limits, heartbeatTimeoutMs: 10_000 },
      { clock: systemClock, log: silentLogger, environment: {} },
    );
    const clientCaFile = join(containerd.stateDir, "ca.crt");
    await writeFile(clientCaFile, api.caPem);
    const access = accessRules({ kubeconfig: nodeKubeconfig, clientCaFile });
    const agent = await TestAgent.start(containerd, { ...access, ...config }, [...flags, ...moreFlags]);
    return new ApiCluster({ api, agent, outage, admin: clients.main, adminKubeconfig }, async () => {
      await agent[Symbol.asyncDispose]();
      clients[Symbol.dispose]();
      await outage[Symbol.asyncDispose]();
      await api.stop();
      await scope.stop();
    });
  }

  /** Creates a pod bound to the node. */
  async create(name: string, spec: Partial<PodSpec>): Promise<IdentifiedPod> {
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default" },
      spec: {
        nodeName: "test-node",
        terminationGracePeriodSeconds: 2,
        automountServiceAccountToken: false,
        containers: [],
        ...spec,
      },
    };
    const ref = { namespace: "default" };
    return (await this.admin.create(resources.pods, ref, pod, AbortSignal.timeout(10_000))) as IdentifiedPod;
  }

  async pod(name: string): Promise<Pod | undefined> {
    const { items } = await this.admin.list(resources.pods, { namespace: "default" }, {}, AbortSignal.timeout(10_000));
    return items.find(({ metadata }) => metadata?.name === name);
  }

  async until(name: string, what: string, condition: (pod: Pod) => boolean, timeoutMs = 60_000): Promise<Pod> {
    let last: Pod | undefined;
    try {
      return await eventually(
        async () => {
          last = await this.pod(name);
          return last !== undefined && condition(last) ? last : undefined;
        },
        `${name}: ${what}`,
        timeoutMs,
      );
    } catch (error) {
      throw new Error(`${error}\nlast: ${JSON.stringify(last?.status)}\nagent log:\n${await this.agent.logTail()}`);
    }
  }

  async untilGone(name: string, timeoutMs = 60_000): Promise<void> {
    await eventually(async () => (await this.pod(name)) === undefined, `${name} is gone`, timeoutMs);
  }

  /** Follows the pods of the API, and remembers those that are gone as they were last. */
  async watch(): Promise<PodWatch> {
    const scope = new TaskScope();
    const informer = new Informer<Pod>(
      { resource: resources.pods, namespace: "default", keep: withoutManagedFields },
      { client: this.admin, clock: systemClock, log: silentLogger, random: Math.random },
    );
    const history = new Map<string, Pod[]>();
    const note = (pod: Pod): void => {
      const name = pod.metadata?.name ?? "";
      history.set(name, [...(history.get(name) ?? []), pod]);
    };
    informer.onChange(({ object }) => note(object));
    scope.spawn("watch", (signal) => informer.run(signal));
    await informer.synced(scope.signal);
    return {
      lastSeen: (name) => history.get(name)?.at(-1),
      versions: (name) => history.get(name) ?? [],
      [Symbol.asyncDispose]: () => scope.stop(),
    };
  }

  async delete(name: string, gracePeriodSeconds?: number): Promise<void> {
    const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    await this.admin.delete(resources.pods, { namespace: "default", name }, options, AbortSignal.timeout(10_000));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#dispose();
  }
}

export interface PodWatch extends AsyncDisposable {
  lastSeen(name: string): Pod | undefined;
  /** Everything that was seen of a pod, in order. */
  versions(name: string): readonly Pod[];
}
