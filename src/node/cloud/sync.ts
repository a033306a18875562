import { readFile } from "node:fs/promises";
import { type Clock, ifThere, isAbort, type Logger, savePrivateFile, Topic, waitFor } from "../../ground/base/index.ts";
import { type CloudInstance, parseInstance } from "./instance.ts";
import type { CloudProvider } from "./provider.ts";

export interface CloudSyncPorts {
  readonly provider: CloudProvider;
  /** What the cloud last said, for a start while it is out of reach. */
  readonly path: string;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const firstRetryMs = 1_000;
/** So long a node waits for the cloud before it registers without it. */
const firstAnswerMs = 10_000;

/**
 * Asks a cloud about this machine from time to time. A cloud that fails or falls silent changes nothing: what it last
 * said counts, also over a restart of the agent.
 */
export class CloudSync {
  readonly changed = new Topic();
  readonly #ports: CloudSyncPorts;
  /** Told with every outcome of a question. */
  readonly #asked = new Topic();
  #instance: CloudInstance | undefined;
  #outcome: "answered" | "failed" | undefined;
  #problem: string | undefined;
  #onDisk = "";

  constructor(ports: CloudSyncPorts) {
    this.#ports = ports;
  }

  /** Undefined while the cloud has never answered. */
  get instance(): CloudInstance | undefined {
    return this.#instance;
  }

  /**
   * Resolves when the cloud has answered, or could not and something is known of before, or when it is not worth waiting
   * any longer. What is known of before may be of another machine, whose disk this was copied from.
   */
  async firstAnswer(signal: AbortSignal): Promise<void> {
    const isOver = (): boolean =>
      this.#outcome === "answered" || (this.#outcome === "failed" && this.#instance !== undefined);
    if (isOver()) return;
    await waitFor(signal, (done) => {
      const timer = this.#ports.clock.after(firstAnswerMs, done);
      const stop = this.#asked.on(() => {
        if (isOver()) done();
      });
      return () => {
        timer.cancel();
        stop();
      };
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { provider, clock, log, everyMs } = this.#ports;
    await this.#recall();
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      try {
        await this.#learn(await provider.instance(signal));
        this.#note("answered");
        retryMs = firstRetryMs;
        await clock.sleep(everyMs, signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        this.#complain(error, log);
        this.#note("failed");
        await clock.sleep(retryMs, signal);
        retryMs = Math.min(retryMs * 2, everyMs);
      }
    }
  }

  async #recall(): Promise<void> {
    try {
      const text = await ifThere(readFile(this.#ports.path, "utf8"));
      if (text === undefined) return;
      this.#become(parseInstance(text));
      this.#onDisk = text;
    } catch (error) {
      this.#ports.log.warn("What the cloud said before can't be read", { error });
    }
  }

  async #learn(instance: CloudInstance): Promise<void> {
    const { log } = this.#ports;
    if (this.#problem !== undefined) log.info("The cloud answers again");
    this.#problem = undefined;
    const next = this.#instance === undefined ? instance : withKnown(instance, this.#instance);
    if (JSON.stringify(next) !== JSON.stringify(this.#instance)) this.#become(next);
    await this.#save(next);
  }

  /** What a full disk did not take is brought again with the next answer. */
  async #save({ providerId: providerID, ...others }: CloudInstance): Promise<void> {
    const { path, log } = this.#ports;
    const text = `${JSON.stringify({ providerID, ...others })}\n`;
    if (text === this.#onDisk) return;
    try {
      await savePrivateFile(path, text);
      this.#onDisk = text;
    } catch (error) {
      log.error("What the cloud said can't be saved", error);
    }
  }

  #note(outcome: "answered" | "failed"): void {
    this.#outcome = outcome;
    this.#asked.tell();
  }

  #become(instance: CloudInstance): void {
    this.#instance = instance;
    this.changed.tell();
  }

  #complain(error: unknown, log: Logger): void {
    const problem = String(error);
    if (problem === this.#problem) return;
    this.#problem = problem;
    log.error("failed to get node address from cloud provider; what is known stays", error, {
      provider: this.#ports.provider.name,
    });
  }
}

/**
 * A cloud that does not say something yet, or for a moment, has nothing better than what is known; unless that is of
 * another machine, whose disk this was copied from: its addresses would bring others to it.
 */
function withKnown(instance: CloudInstance, known: CloudInstance): CloudInstance {
  const isOther = instance.providerId !== "" && known.providerId !== "" && instance.providerId !== known.providerId;
  if (isOther) return instance;
  return {
    providerId: instance.providerId || known.providerId,
    addresses: instance.addresses.length > 0 ? instance.addresses : known.addresses,
    zone: instance.zone || known.zone,
    region: instance.region || known.region,
    instanceType: instance.instanceType || known.instanceType,
  };
}
