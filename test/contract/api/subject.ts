import { type ApiAccess, ApiClient } from "./client.ts";

/** An API server under test. */
export interface ApiSubject extends AsyncDisposable {
  readonly admin: ApiAccess;
  /** Credentials of a node of this name, where they can be had. */
  node?(name: string): Promise<ApiAccess>;
  /** Makes the server forget past changes, where that can be had. */
  compact?(): void;
}

/** What the tests of the contract share; filled in before they run. */
export class Cluster {
  #subject: ApiSubject | undefined;
  #client: ApiClient | undefined;
  /** A namespace of this run alone. */
  readonly namespace = `contract-${Math.random().toString(36).slice(2, 8)}`;

  get subject(): ApiSubject {
    if (this.#subject === undefined) throw new Error("the API server has not been started");
    return this.#subject;
  }

  get client(): ApiClient {
    if (this.#client === undefined) throw new Error("the API server has not been started");
    return this.#client;
  }

  /** The address of a namespaced resource of the core group. */
  path(resource: string): string {
    return `/api/v1/namespaces/${this.namespace}/${resource}`;
  }

  async start(subject: ApiSubject): Promise<void> {
    this.#subject = subject;
    this.#client = new ApiClient(subject.admin);
    const { code, body } = await this.#client.post("/api/v1/namespaces", { metadata: { name: this.namespace } });
    if (code !== 201) throw new Error(`the namespace of the tests was refused: ${JSON.stringify(body)}`);
    // In a cluster, a controller gives the namespace its service account a moment later.
    for await (const { type } of this.#client.watch(`${this.path("serviceaccounts")}?watch=true`)) {
      if (type === "ADDED") break;
    }
  }

  async stop(): Promise<void> {
    try {
      // Their node does not exist, so nobody else will end them.
      await this.#client?.delete(this.path("pods"), { gracePeriodSeconds: 0 });
      await this.#client?.delete(`/api/v1/namespaces/${this.namespace}`);
    } finally {
      this.#client?.[Symbol.dispose]();
      await this.#subject?.[Symbol.asyncDispose]();
    }
  }
}

export function configMap(name: string, data: Readonly<Record<string, string>> = {}): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

/** A pod bound to a node that does not exist, so that nobody but the test changes it. */
export function boundPod(name: string, spec: object = {}): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { nodeName: "contract-node", containers: [{ name: "main", image: "registry.invalid/none:1" }], ...spec },
  };
}
