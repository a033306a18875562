import { type Clock, type Logger, TaskScope } from "../base/index.ts";
import type { AgentConfig } from "../config/index.ts";
import {
  Informer,
  isNotFound,
  type KubeClient,
  KubeClients,
  type KubeObject,
  loadKubeconfig,
  type Resource,
  resources,
  withoutManagedFields,
} from "../kube/index.ts";
import type { IdentifiedPod, Node, Pod, RuntimeClass, Service, TokenRequest } from "../model/index.ts";
import { isIdentified } from "../sources/index.ts";
import type { ObjectSource } from "../volumes/index.ts";

/** The agent's side of a cluster: clients, and copies of what it must know at any time. */
export interface Cluster {
  readonly clients: KubeClients;
  readonly pods: Informer<Pod, IdentifiedPod>;
  readonly services: Informer<Service>;
  readonly runtimeClasses: Informer<RuntimeClass>;
  readonly nodes: Informer<Node>;
  readonly objects: ObjectSource;
  node(): Node | undefined;
  requestToken(
    namespace: string,
    serviceAccount: string,
    spec: TokenRequest["spec"],
    signal: AbortSignal,
  ): Promise<TokenRequest>;
}

export interface ClusterParts {
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string>>;
}

/** Reads the kubeconfig and begins to follow the API server; resolves without waiting for its first answer. */
export async function joinCluster(parts: ClusterParts, scope: TaskScope): Promise<Cluster> {
  const { config, clock, environment } = parts;
  const { kubelet, flags, nodeName, reportedVersion } = config;
  const log = parts.log.named("kube");
  const clients = new KubeClients(
    await loadKubeconfig(flags.kubeconfig),
    {
      userAgent: `nodelet/${reportedVersion} (linux) kubernetes`,
      main: { qps: kubelet.kubeAPIQPS, burst: kubelet.kubeAPIBurst },
      events: { qps: kubelet.eventRecordQPS, burst: kubelet.eventBurst },
      heartbeatTimeoutMs: Math.min(kubelet.nodeStatusUpdateFrequencyMs, kubelet.nodeLeaseDurationSeconds * 1000),
    },
    { clock, log, environment },
  );
  scope.signal.addEventListener("abort", () => clients[Symbol.dispose](), { once: true });
  const follow = <Kind extends KubeObject, Kept>(
    resource: Resource<Kind>,
    fieldSelector: string | undefined,
    keep: (object: Kind) => Kept | undefined,
  ): Informer<Kind, Kept> => {
    const informer = new Informer<Kind, Kept>(
      { resource, keep, ...(fieldSelector === undefined ? {} : { fieldSelector }) },
      { client: clients.main, clock, log, random: Math.random },
    );
    scope.spawn(`follow ${resource.plural}`, (signal) => informer.run(signal));
    return informer;
  };
  const nodes = follow(resources.nodes, `metadata.name=${nodeName}`, withoutManagedFields);
  return {
    clients,
    nodes,
    pods: follow(resources.pods, `spec.nodeName=${nodeName}`, (pod) => {
      const kept = withoutManagedFields(pod);
      return isIdentified(kept) ? kept : undefined;
    }),
    services: follow(resources.services, "spec.clusterIP!=None", withoutManagedFields),
    runtimeClasses: follow(resources.runtimeClasses, undefined, withoutManagedFields),
    node: () => nodes.get(undefined, nodeName),
    objects: objectSource(clients.main, { clock, log }, scope),
    requestToken: async (namespace, serviceAccount, spec, signal) => {
      const body: TokenRequest = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
      const ref = { namespace, name: serviceAccount, subresource: "token" };
      return await clients.main.create(resources.serviceAccounts, ref, body, signal);
    },
  };
}

/** Config maps and secrets by name: a node may read only those that its pods use, so each is followed by itself. */
function objectSource(client: KubeClient, ports: { clock: Clock; log: Logger }, scope: TaskScope): ObjectSource {
  const kinds = { configmap: resources.configMaps, secret: resources.secrets } as const;
  return {
    async get({ kind, namespace, name }, freshness, signal) {
      const options = freshness === "cached" ? { resourceVersion: "0" } : {};
      try {
        return (await client.get(kinds[kind], { namespace, name }, options, signal)) as never;
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    watch({ kind, namespace, name }, onObject) {
      const own = new TaskScope(scope.signal);
      const informer = new Informer<KubeObject>(
        { resource: kinds[kind], namespace, fieldSelector: `metadata.name=${name}`, keep: withoutManagedFields },
        { client, ...ports, random: Math.random },
      );
      const tell = (): void => onObject(informer.get(namespace, name) as never);
      informer.onChange(tell);
      own.spawn(`follow ${kind} ${namespace}/${name}`, (signal) => informer.run(signal));
      own.spawn(`first look at ${kind} ${namespace}/${name}`, async (signal) => {
        await informer.synced(signal);
        tell();
      });
      return { [Symbol.dispose]: () => void own.stop() };
    },
  };
}
