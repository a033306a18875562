import { readBootTime } from "../../connections/host/index.ts";
import type { Clock } from "../../ground/base/index.ts";
import type { MetricRegistry } from "../../ground/metrics/index.ts";
import type { Node } from "../../ground/model/index.ts";

/** How long a node took from the start of its machine to being ready; only of a node that this agent has made. */
export class NodeStartup {
  readonly #registry: MetricRegistry;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #beganAt = 0;
  #registeredAt: number | undefined;
  #isOver = false;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** The agent begins to register its node. */
  begin(): void {
    this.#beganAt = this.#clock.now();
  }

  readonly onNode = (node: Node | undefined): void => {
    if (this.#isOver || node === undefined) return;
    const now = this.#clock.now();
    const createdAt = Date.parse(String(node.metadata?.creationTimestamp ?? ""));
    // The API server tells whole seconds.
    if (!(createdAt >= this.#startedAt - 1_000)) {
      this.#isOver = true;
      return;
    }
    this.#registeredAt ??= now;
    if (node.status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True") return;
    this.#isOver = true;
    this.#show(readBootTime(), this.#registeredAt, now);
  };

  #show(bootAt: number, registeredAt: number, readyAt: number): void {
    const spans: readonly (readonly [string, string, number, number])[] = [
      ["kubelet_node_startup_pre_kubelet_duration_seconds", "machine to agent", bootAt, this.#startedAt],
      [
        "kubelet_node_startup_pre_registration_duration_seconds",
        "agent to registration",
        this.#startedAt,
        this.#beganAt,
      ],
      ["kubelet_node_startup_registration_duration_seconds", "registration", this.#beganAt, registeredAt],
      ["kubelet_node_startup_post_registration_duration_seconds", "registration to ready", registeredAt, readyAt],
      ["kubelet_node_startup_duration_seconds", "machine to ready", bootAt, readyAt],
    ];
    for (const [name, what, from, to] of spans) {
      const help = `[ALPHA] How long the start of this node took: ${what}`;
      this.#registry.gauge(name, help).set({}, Math.max(0, to - from) / 1000);
    }
  }
}
