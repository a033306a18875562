import { join } from "node:path";
import {
  type ApiConnection,
  type CertificateState,
  EventRecorder,
  getObject,
  Informer,
  type KubeClient,
  type KubeObject,
  ObjectWatches,
  type Resource,
  requestToken,
  resources,
  withoutManagedFields,
} from "../connections/kube/index.ts";
import type { TaskScope } from "../ground/base/index.ts";
import type { IdentifiedPod, Pod, RuntimeClass, Service } from "../ground/model/index.ts";
import { showClientCertificate } from "../node/metrics/index.ts";
import { CsiNodeKeeper, KnownNode, newNode, nodeSettingsOf, OwnNode } from "../node/object/index.ts";
import { isIdentified } from "../pod/sources/index.ts";
import type { ObjectKind, ObjectKinds, ObjectSource, RequestToken } from "../pod/volumes/index.ts";
import type { Foundation } from "./foundation.ts";

/** The agent's side of a cluster: clients, and copies of what it must know at any time. */
export interface Cluster {
  readonly clients: ApiConnection["clients"];
  readonly pods: Informer<Pod, IdentifiedPod>;
  readonly services: Informer<Service>;
  readonly runtimeClasses: Informer<RuntimeClass>;
  /** The Node as the API server has it. */
  readonly own: OwnNode;
  /** The Node that pods are judged by. */
  readonly known: KnownNode;
  readonly csiNode: CsiNodeKeeper;
  readonly objects: ObjectSource;
  readonly events: EventRecorder;
  readonly requestToken: RequestToken;
  /** Of the certificate that the agent keeps renewing; undefined: it keeps none. */
  clientCertificate(): CertificateState | undefined;
  /**
   * Opens the way to the API server and begins to follow it; resolves without waiting for its first answer, unless the
   * node has yet to become a member and its certificate is not rotated.
   */
  start(scope: TaskScope): Promise<void>;
}

export function buildCluster(base: Foundation, connection: ApiConnection): Cluster {
  const { config, clock, random } = base;
  const log = base.log.named("kube");
  const { clients } = connection;
  const { nodeName } = config;
  const ports = { client: clients.main, clock, log, random };
  const follow = <Kind extends KubeObject, Kept>(
    resource: Resource<Kind>,
    fieldSelector: string | undefined,
    keep: (object: Kind) => Kept | undefined,
  ): Informer<Kind, Kept> =>
    new Informer<Kind, Kept>({ resource, keep, ...(fieldSelector === undefined ? {} : { fieldSelector }) }, ports);
  const pods = follow(resources.pods, `spec.nodeName=${nodeName}`, (pod) => {
    const kept = withoutManagedFields(pod);
    return isIdentified(kept) ? kept : undefined;
  });
  const services = follow(resources.services, "spec.clusterIP!=None", withoutManagedFields);
  const runtimeClasses = follow(resources.runtimeClasses, undefined, withoutManagedFields);
  const own = new OwnNode(nodeName, ports);
  const known = knownNode(base, own);
  const csiNode = new CsiNodeKeeper(nodeName, {
    ...ports,
    log: base.log.named("node"),
    onNode: (node) => own.answered(node),
  });
  const events = new EventRecorder(nodeName, {
    client: clients.events,
    clock,
    log: log.named("events"),
    random,
    churn: () => base.churn.level,
  });
  return {
    clients,
    pods,
    services,
    runtimeClasses,
    own,
    known,
    csiNode,
    events,
    objects: objectSource(clients.main, new ObjectWatches(base.scope, ports)),
    requestToken: (namespace, serviceAccount, spec, signal) =>
      requestToken(clients.main, namespace, serviceAccount, spec, signal),
    clientCertificate: () => connection.certificate?.state,
    async start(scope) {
      await connection.open(scope);
      const { certificate } = connection;
      if (certificate !== undefined) showClientCertificate(base.metrics.figures.main, certificate);
      scope.spawn("events", (signal) => events.run(signal));
      scope.spawn("follow nodes", (signal) => own.run(signal));
      scope.spawn("the Node that is known", (signal) => known.run(signal));
      scope.spawn("follow pods", (signal) => pods.run(signal));
      scope.spawn("follow services", (signal) => services.run(signal));
      scope.spawn("follow runtimeclasses", (signal) => runtimeClasses.run(signal));
    },
  };
}

function knownNode({ config, host, rootDir, clock, log }: Foundation, own: OwnNode): KnownNode {
  const { architecture } = host.facts.machine;
  const known = new KnownNode({
    clock,
    log: log.named("node"),
    nodeName: config.nodeName,
    path: join(rootDir, "nodelet", "node.json"),
    ownNode: () => newNode(nodeSettingsOf(config), architecture),
  });
  // One that is deleted under a running agent stays known as it was.
  own.onNode((node) => {
    if (node !== undefined) known.learn(node);
  });
  return known;
}

/** Config maps and secrets by name: a node may read only those that its pods use, so each is followed by itself. */
function objectSource(client: Pick<KubeClient, "get">, watches: ObjectWatches): ObjectSource {
  const kinds = { configmap: resources.configMaps, secret: resources.secrets } as const;
  // The kind of a reference decides the kind of the object, which the compiler can't follow through the table.
  const resourceOf = <Kind extends ObjectKind>(kind: Kind) => kinds[kind] as unknown as Resource<ObjectKinds[Kind]>;
  return {
    get: ({ kind, ...object }, freshness, signal) => getObject(client, resourceOf(kind), object, freshness, signal),
    watch: ({ kind, ...object }, onObject, who) => watches.watch(resourceOf(kind), object, onObject, who),
  };
}
