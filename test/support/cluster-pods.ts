import {
  Informer,
  type KubeClient,
  KubeClients,
  loadKubeconfig,
  resources,
  withoutManagedFields,
} from "../../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { IdentifiedPod, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { answerMs, eventually, podUntil, type TestAgent } from "./agent.ts";

/** Clients of an administrator who is never throttled. */
export async function adminClients(kubeconfig: string): Promise<KubeClients> {
  const limits = { qps: 1000, burst: 1000 };
  return new KubeClients(
    await loadKubeconfig(kubeconfig),
    { userAgent: "test", main: limits, events: limits, heartbeatTimeoutMs: 10_000 },
    { clock: systemClock, log: silentLogger, environment: {} },
  );
}

/** What an administrator does with the pods of one node, whichever API server it is. */
export class ClusterPods {
  readonly agent: TestAgent;
  readonly admin: KubeClient;

  constructor({ agent, admin }: { readonly agent: TestAgent; readonly admin: KubeClient }) {
    this.agent = agent;
    this.admin = admin;
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
    return (await this.admin.create(resources.pods, ref, pod, AbortSignal.timeout(answerMs))) as IdentifiedPod;
  }

  async pod(name: string): Promise<Pod | undefined> {
    const { items } = await this.admin.list(
      resources.pods,
      { namespace: "default" },
      {},
      AbortSignal.timeout(answerMs),
    );
    return items.find(({ metadata }) => metadata?.name === name);
  }

  /** As the agent itself shows it, API or not. */
  async local(name: string): Promise<Pod | undefined> {
    const pods = await this.agent.client.pods(AbortSignal.timeout(answerMs));
    return pods.find(({ metadata }) => metadata?.name === name);
  }

  /** How often the agent has had to judge pods without the API server, which it waits for at each start. */
  async judgementsWithoutApi(): Promise<number> {
    return (await this.agent.log()).split("The API server has not sent the Node").length - 1;
  }

  async until(name: string, what: string, condition: (pod: Pod) => boolean, timeoutMs = 60_000): Promise<Pod> {
    return await podUntil(this.agent, () => this.pod(name), condition, `${name}: ${what}`, timeoutMs);
  }

  async untilGone(name: string, timeoutMs = 60_000): Promise<void> {
    await eventually(async () => (await this.pod(name)) === undefined, `${name} is gone`, timeoutMs);
  }

  /** Follows the pods of the API, and remembers those that are gone as they were last; `onSeen` hears of each change. */
  async watch(onSeen: (pod: Pod) => void = () => {}): Promise<PodWatch> {
    const scope = new TaskScope();
    const informer = new Informer<Pod>(
      { resource: resources.pods, namespace: "default", keep: withoutManagedFields },
      { client: this.admin, clock: systemClock, log: silentLogger, random: Math.random },
    );
    const history = new Map<string, Pod[]>();
    const note = (pod: Pod): void => {
      const name = pod.metadata?.name ?? "";
      history.set(name, [...(history.get(name) ?? []), pod]);
      onSeen(pod);
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
    await this.admin.delete(resources.pods, { namespace: "default", name }, options, AbortSignal.timeout(answerMs));
  }
}

export interface PodWatch extends AsyncDisposable {
  lastSeen(name: string): Pod | undefined;
  /** Everything that was seen of a pod, in order. */
  versions(name: string): readonly Pod[];
}
