import {
  isNotFound,
  type KubeClient,
  type KubeObject,
  type Resource,
  resources,
} from "../../../src/connections/kube/index.ts";
import type { Pod, PodSpec } from "../../../src/ground/model/index.ts";
import type { TestAgent } from "../agent.ts";
import { soon } from "../until.ts";
import { type ControlPlane, nodeName } from "./control-plane.ts";
import { byNodeName, type Maker, type SteadyPod } from "./steady-pods.ts";
import { steadyLabel } from "./witness.ts";

interface Workload extends KubeObject {
  readonly spec: object;
}

const workloads: Readonly<Record<"DaemonSet" | "Deployment" | "StatefulSet", Resource<Workload>>> = {
  DaemonSet: { apiVersion: "apps/v1", kind: "DaemonSet", plural: "daemonsets", scope: "namespace" },
  Deployment: { apiVersion: "apps/v1", kind: "Deployment", plural: "deployments", scope: "namespace" },
  StatefulSet: { apiVersion: "apps/v1", kind: "StatefulSet", plural: "statefulsets", scope: "namespace" },
};
const replicaSets: Resource<Workload> = { ...workloads.Deployment, kind: "ReplicaSet", plural: "replicasets" };
const place = { namespace: "default" } as const;

/** Makes and unmakes the steady pods, each by whom it shall be made. */
export class Makers {
  readonly #plane: ControlPlane;
  readonly #admin: KubeClient;
  readonly #agent: TestAgent;

  constructor(plane: ControlPlane, admin: KubeClient, agent: TestAgent) {
    this.#plane = plane;
    this.#admin = admin;
    this.#agent = agent;
  }

  async make({ name, maker, spec }: SteadyPod): Promise<void> {
    const labels = { [steadyLabel]: name };
    const common = { terminationGracePeriodSeconds: 2, automountServiceAccountToken: false, ...spec };
    const by = this.#whoMakes(maker);
    switch (by) {
      case "manifest":
        return await this.#agent.apply(name, common, { namespace: "default", labels });
      case "administrator":
        await this.#create({ name, labels }, maker === "DaemonSet" ? { affinity: byNodeName, ...common } : common);
        return;
      default: {
        const template = { metadata: { labels }, spec: { containers: [], ...common } };
        const more = by === "StatefulSet" ? { serviceName: name } : {};
        const body = { metadata: { name }, spec: { selector: { matchLabels: labels }, template, ...more } };
        const { apiVersion, kind } = workloads[by];
        await this.#admin.create(workloads[by], place, { apiVersion, kind, ...body }, soon());
      }
    }
  }

  /** Pods that controllers made go with what made them. */
  async unmake({ name, maker }: SteadyPod): Promise<void> {
    const by = this.#whoMakes(maker);
    if (by === "manifest") return await this.#agent.remove(name);
    const resource = by === "administrator" ? resources.pods : workloads[by];
    const options = { propagationPolicy: "Background" } as const;
    await this.#admin.delete(resource, { ...place, name }, options, soon()).catch((error: unknown) => {
      // That it is gone already is the witness's to tell.
      if (!isNotFound(error)) throw error;
    });
  }

  /**
   * Asks for the end of every steady pod that is still in the API: a collector of garbage whose API server was killed may
   * forget them, and only what the agent was asked to end can be left by it. ReplicaSets that are left would replace them.
   */
  async deletePods(): Promise<void> {
    await this.#admin.deleteCollection(replicaSets, place, { labelSelector: steadyLabel }, soon());
    await this.#admin.deleteCollection(resources.pods, place, { labelSelector: steadyLabel }, soon());
  }

  async #create(metadata: object, spec: Partial<PodSpec>): Promise<void> {
    const pod: Pod = { apiVersion: "v1", kind: "Pod", metadata, spec: { nodeName, containers: [], ...spec } };
    await this.#admin.create(resources.pods, place, pod, soon());
  }

  #whoMakes(maker: Maker): Maker {
    return this.#plane.controllers === "real" || maker === "manifest" ? maker : "administrator";
  }
}
