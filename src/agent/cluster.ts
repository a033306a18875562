import {
  type CertificateFigures,
  EventRecorder,
  getObject,
  Informer,
  type KubeClient,
  type KubeClients,
  type KubeObject,
  ObjectWatches,
  type RequestReport,
  type Resource,
  requestToken,
  resources,
  withoutManagedFields,
} from "../connections/kube/index.ts";
import { type Clock, type Logger, onAbort, type TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { IdentifiedPod, Node, Pod, RuntimeClass, Service, TokenRequest } from "../ground/model/index.ts";
import { isIdentified } from "../pod/sources/index.ts";
import type { ObjectKind, ObjectKinds, ObjectSource } from "../pod/volumes/index.ts";
import { openClusterDoor } from "./cluster-access.ts";

/** The agent's side of a cluster: clients, and copies of what it must know at any time. */
export interface Cluster {
  readonly clients: KubeClients;
  /** Of the client certificate; undefined when the agent does not manage it. */
  readonly clientCertificate: CertificateFigures | undefined;
  readonly pods: Informer<Pod, IdentifiedPod>;
  readonly services: Informer<Service>;
  readonly runtimeClasses: Informer<RuntimeClass>;
  readonly nodes: Informer<Node>;
  node(): Node | undefined;
  readonly objects: ObjectSource;
  readonly events: EventRecorder;
  requestToken(
    namespace: string,
    serviceAccount: string,
    spec: TokenRequest["spec"],
    signal: AbortSignal,
  ): Promise<TokenRequest>;
}

export interface ClusterParts {
  readonly config: AgentConfig;
  readonly certDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string>>;
  readonly watchRequests: (host: string) => (report: RequestReport) => void;
}

/**
 * Opens the way to the API server and begins to follow it; resolves without waiting for its first answer, unless the
 * node has yet to become a member and its certificate is not rotated.
 */
export async function joinCluster(parts: ClusterParts, scope: TaskScope): Promise<Cluster> {
  const { config, clock } = parts;
  const { kubelet, nodeName, reportedVersion } = config;
  const log = parts.log.named("kube");
  const { random } = Math;
  const settings = {
    userAgent: `nodelet/${reportedVersion} (linux) kubernetes`,
    main: { qps: kubelet.kubeAPIQPS, burst: kubelet.kubeAPIBurst },
    events: { qps: kubelet.eventRecordQPS, burst: kubelet.eventBurst },
    heartbeatTimeoutMs: Math.min(kubelet.nodeStatusUpdateFrequencyMs, kubelet.nodeLeaseDurationSeconds * 1000),
  };
  const door = await openClusterDoor({ ...parts, settings, log }, scope);
  const { clients } = door;
  onAbort(scope.signal, () => clients[Symbol.dispose]());
  const follow = <Kind extends KubeObject, Kept>(
    resource: Resource<Kind>,
    fieldSelector: string | undefined,
    keep: (object: Kind) => Kept | undefined,
  ): Informer<Kind, Kept> => {
    const informer = new Informer<Kind, Kept>(
      { resource, keep, ...(fieldSelector === undefined ? {} : { fieldSelector }) },
      { client: clients.main, clock, log, random },
    );
    scope.spawn(`follow ${resource.plural}`, (signal) => informer.run(signal));
    return informer;
  };
  const events = new EventRecorder(nodeName, { client: clients.events, clock, log: log.named("events"), random });
  scope.spawn("events", (signal) => events.run(signal));
  const nodes = follow(resources.nodes, `metadata.name=${nodeName}`, withoutManagedFields);
  return {
    clients,
    clientCertificate: door.certificate,
    nodes,
    node: () => nodes.get(undefined, nodeName),
    pods: follow(resources.pods, `spec.nodeName=${nodeName}`, (pod) => {
      const kept = withoutManagedFields(pod);
      return isIdentified(kept) ? kept : undefined;
    }),
    services: follow(resources.services, "spec.clusterIP!=None", withoutManagedFields),
    runtimeClasses: follow(resources.runtimeClasses, undefined, withoutManagedFields),
    objects: objectSource(clients.main, new ObjectWatches(scope, { client: clients.main, clock, log, random })),
    requestToken: (namespace, serviceAccount, spec, signal) =>
      requestToken(clients.main, namespace, serviceAccount, spec, signal),
    events,
  };
}

/** Config maps and secrets by name: a node may read only those that its pods use, so each is followed by itself. */
function objectSource(client: KubeClient, watches: ObjectWatches): ObjectSource {
  const kinds = { configmap: resources.configMaps, secret: resources.secrets } as const;
  // The kind of a reference decides the kind of the object, which the compiler can't follow through the table.
  const resourceOf = <Kind extends ObjectKind>(kind: Kind) => kinds[kind] as unknown as Resource<ObjectKinds[Kind]>;
  return {
    get: ({ kind, ...object }, freshness, signal) => getObject(client, resourceOf(kind), object, freshness, signal),
    watch: ({ kind, ...object }, onObject) => watches.watch(resourceOf(kind), object, onObject),
  };
}
