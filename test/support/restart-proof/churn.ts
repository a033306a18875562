import { isNotFound, type KubeClient, resources } from "../../../src/connections/kube/index.ts";
import type { Container, Pod } from "../../../src/ground/model/index.ts";
import { nodeName } from "./control-plane.ts";

/** So many are there at most. */
const crowd = 4;
const place = { namespace: "default" } as const;

/** Pods that come and go beside the steady ones. None asks for a share of the burstable tier, whose weight must not change. */
export class Churn {
  readonly #admin: KubeClient;
  readonly #image: string;
  readonly #random: () => number;
  readonly #alive: string[] = [];
  created = 0;

  constructor(admin: KubeClient, image: string, random: () => number) {
    this.#admin = admin;
    this.#image = image;
    this.#random = random;
  }

  /** Creates one, and deletes one when there are enough. An API server that is away is no fault of ours. */
  async stir(): Promise<void> {
    try {
      if (this.#alive.length >= crowd) await this.#deleteOne();
      await this.#createOne();
    } catch (error) {
      if (error instanceof Error && error.name === "ApiError") throw error;
    }
  }

  async #createOne(): Promise<void> {
    const name = `churn-${this.created++}`;
    const containers = [this.#container()];
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: { nodeName, terminationGracePeriodSeconds: 2, automountServiceAccountToken: false, containers },
    };
    this.#alive.push(name);
    await this.#admin.create(resources.pods, place, pod, AbortSignal.timeout(5_000));
  }

  async #deleteOne(): Promise<void> {
    const [name = ""] = this.#alive.splice(Math.floor(this.#random() * this.#alive.length), 1);
    await this.#delete(name);
  }

  async end(): Promise<void> {
    for (const name of this.#alive.splice(0)) await this.#delete(name);
  }

  async #delete(name: string): Promise<void> {
    try {
      await this.#admin.delete(resources.pods, { ...place, name }, {}, AbortSignal.timeout(5_000));
    } catch (error) {
      if (!isNotFound(error)) {
        this.#alive.push(name);
        throw error;
      }
    }
  }

  #container(): Container {
    const exact = { cpu: "10m", memory: "16Mi" };
    const run = (script: string) => ({ exec: { command: ["sh", "-c", script] } });
    const variants: readonly (readonly [string, Partial<Container>])[] = [
      ["trap 'exit 0' TERM; sleep 1d & wait", {}],
      ["trap 'exit 0' TERM; sleep 1d & wait", { resources: { requests: exact, limits: exact } }],
      ["trap 'sleep 0.5; exit 0' TERM; sleep 1d & wait", { readinessProbe: run("true") }],
      [
        "trap 'exit 0' TERM; sleep 1d & wait",
        { lifecycle: { preStop: run("sleep 0.3"), postStart: run("sleep 0.3") } },
      ],
      ["sleep 1; exit 1", {}],
    ];
    const [script, more] = variants[Math.floor(this.#random() * variants.length)] as (typeof variants)[number];
    return { name: "main", image: this.#image, command: ["sh", "-c", script], ...more };
  }
}
