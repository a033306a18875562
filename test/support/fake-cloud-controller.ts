import { type KubeClient, resources } from "../../src/connections/kube/index.ts";
import type { Node, NodeAddress } from "../../src/ground/model/index.ts";

const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized";
const never = new AbortController().signal;

/** What the cloud knows of one machine. */
export interface FakeInstance {
  readonly providerID: string;
  addresses: readonly NodeAddress[];
  readonly zone: string;
}

/** A cloud-node controller as far as a node can tell: it fills in nodes with the taint, and then keeps their addresses. */
export class FakeCloudController {
  readonly #client: KubeClient;
  readonly #name: string;
  readonly instance: FakeInstance;

  constructor(client: KubeClient, name: string, instance: FakeInstance) {
    this.#client = client;
    this.#name = name;
    this.instance = instance;
  }

  /** One round: initialises the node if it has the taint, else puts its addresses right. */
  async sync(): Promise<void> {
    const node = await this.#client.get(resources.nodes, { name: this.#name }, {}, never);
    const taints = node.spec?.taints ?? [];
    if (taints.some(({ key }) => key === uninitialized)) {
      this.#validate(node);
      const { providerID, zone } = this.instance;
      const kept = taints.filter(({ key }) => key !== uninitialized);
      const labels = { "topology.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/zone": zone };
      const body = { metadata: { labels }, spec: { providerID, taints: kept.length > 0 ? kept : null } };
      await this.#client.patch(resources.nodes, { name: this.#name }, { type: "merge", body }, never);
    }
    const own = (node.status?.addresses ?? []).filter(({ type }) => type === "Hostname");
    const addresses = [...this.instance.addresses, ...own];
    const ref = { name: this.#name, subresource: "status" };
    await this.#client.patch(resources.nodes, ref, { type: "merge", body: { status: { addresses } } }, never);
  }

  #validate({ metadata }: Node): void {
    const provided = metadata?.annotations?.["alpha.kubernetes.io/provided-node-ip"];
    for (const ip of provided === undefined ? [] : provided.split(",")) {
      if (this.instance.addresses.some(({ address }) => address === ip)) continue;
      throw new Error(`failed to get node address from cloud provider that matches ip: ${ip}`);
    }
  }
}
