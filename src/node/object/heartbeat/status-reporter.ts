import { type KubeClient, resources } from "../../../connections/kube/index.ts";
import { type Clock, isAbort, type Logger } from "../../../ground/base/index.ts";
import { jsonEqual, type Node } from "../../../ground/model/index.ts";
import { statusChanged } from "../status/changed.ts";
import { nodeStatusPatch } from "../status/patch.ts";

export interface StatusReporterPorts {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly resetConnection: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** The Node as last heard of; undefined when it has to be asked for. */
  readonly known: () => Node | undefined;
  readonly compute: (node: Node, signal: AbortSignal) => Promise<Node>;
  /** Takes the pods' networks that the cluster gave the node; true when they are others than before. */
  readonly takePodCidrs: (cidrs: readonly string[], signal: AbortSignal) => Promise<boolean>;
  /** The Node as the server has it after a report. */
  readonly onReported: (node: Node) => void;
}

const mostTries = 5;

/** Computes the node's status and writes it when it says something new, or when nothing was written for long. */
export class StatusReporter {
  readonly #nodeName: string;
  readonly #reportEveryMs: number;
  readonly #ports: StatusReporterPorts;
  /** What was said last, and what the server made of it: older ones drop what they have no word for. */
  #answered: { readonly said: Node["status"]; readonly stored: Node["status"] } | undefined;
  #lastReportAt: number | undefined;
  #delayMs = 0;

  constructor(settings: { readonly nodeName: string; readonly reportEveryMs: number }, ports: StatusReporterPorts) {
    this.#nodeName = settings.nodeName;
    this.#reportEveryMs = settings.reportEveryMs;
    this.#ports = ports;
  }

  /** The next report is due at once, whether or not anything has changed. */
  reset(): void {
    this.#lastReportAt = undefined;
  }

  /** One round of up to five tries. */
  async sync(signal: AbortSignal): Promise<void> {
    const { log, resetConnection } = this.#ports;
    for (let tries = 0; tries < mostTries; tries++) {
      try {
        await this.#try(tries, signal);
        return;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.error("Error updating node status, will retry", error);
        if (tries > 0) resetConnection();
      }
    }
    log.error("Unable to update node status", new Error("update node status exceeds retry count"));
  }

  async #try(tries: number, signal: AbortSignal): Promise<void> {
    const { client, compute, takePodCidrs, onReported } = this.#ports;
    const old = await this.#read(tries, signal);
    const cidrs = old.spec?.podCIDRs ?? [];
    const cidrsChanged = cidrs.length > 0 && (await takePodCidrs(cidrs, signal));
    const next = await compute(old, signal);
    const isNews = statusChanged(old.status, next.status) && !this.#wasAnswered(old.status, next.status);
    const changed = cidrsChanged || !jsonEqual(old.metadata, next.metadata) || isNews;
    if (!changed && !this.#isDue()) return;
    const patch = { type: "strategic", body: nodeStatusPatch(old, next) } as const;
    const ref = { name: this.#nodeName, subresource: "status" };
    const stored = await client.patch(resources.nodes, ref, patch, signal);
    this.#reported(changed);
    this.#answered = { said: next.status, stored: stored.status };
    onReported(stored);
  }

  /** To say the same again would change nothing. It is said with the next report all the same: servers are replaced. */
  #wasAnswered(old: Node["status"], next: Node["status"]): boolean {
    if (this.#answered === undefined) return false;
    return !statusChanged(this.#answered.said, next) && !statusChanged(this.#answered.stored, old);
  }

  /** The first try believes what was heard; a failure casts doubt on that. */
  async #read(tries: number, signal: AbortSignal): Promise<Node> {
    const known = tries === 0 ? this.#ports.known() : undefined;
    if (known !== undefined) return known;
    const options = tries === 0 ? { resourceVersion: "0" } : {};
    return this.#ports.client.get(resources.nodes, { name: this.#nodeName }, options, signal);
  }

  #isDue(): boolean {
    if (this.#lastReportAt === undefined) return true;
    return this.#ports.clock.monotonic() - this.#lastReportAt >= this.#reportEveryMs + this.#delayMs;
  }

  /** Nodes that report at the same moment, after an outage say, are spread over the whole period. */
  #reported(changed: boolean): void {
    const { clock, random } = this.#ports;
    const isFirst = this.#lastReportAt === undefined;
    this.#delayMs = changed || isFirst ? this.#reportEveryMs * (random() - 0.5) : 0;
    this.#lastReportAt = clock.monotonic();
  }
}
