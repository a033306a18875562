import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { accessRules } from "../../src/beside/cli/agent-process.ts";
import { type LocalApi, startLocalApi } from "../../src/beside/localapi/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import { TestAgent } from "./agent.ts";
import { adminClients, ClusterPods } from "./cluster-pods.ts";
import type { TestContainerd } from "./containerd.ts";
import { Outage } from "./outage.ts";

/** A local API server, the built agent as its only node, and a way between them that can be cut. */
export class ApiCluster extends ClusterPods implements AsyncDisposable {
  readonly api: LocalApi;
  readonly outage: Outage;
  readonly adminKubeconfig: string;
  readonly #dispose: () => Promise<void>;

  private constructor(
    parts: Pick<ApiCluster, "api" | "agent" | "outage" | "admin" | "adminKubeconfig">,
    dispose: () => Promise<void>,
  ) {
    super(parts);
    this.api = parts.api;
    this.outage = parts.outage;
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
    const clients = await adminClients(adminKubeconfig);
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.#dispose();
  }
}
