import { type KubeClient, resources } from "../../connections/kube/index.ts";
import { type Clock, isAbort, LinkedSignal, type Logger, type TaskScope } from "../../ground/base/index.ts";

export interface ResourceSlicePorts {
  readonly client: Pick<KubeClient, "deleteCollection">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

/** A driver that is replaced is back by then. */
const absentMs = 30_000;
const firstRetryMs = 1_000;
const mostTries = 9;
const jitter = 0.2;

/**
 * Takes away what drivers say of devices on this node when nobody is there to stand by it: all of it when the agent
 * starts (those who are there publish again), and a driver's own once it has been away for a while.
 */
export class ResourceSlices {
  readonly #nodeName: string;
  readonly #ports: ResourceSlicePorts;
  readonly #absent = new Map<string, LinkedSignal>();

  constructor(nodeName: string, ports: ResourceSlicePorts) {
    this.#nodeName = nodeName;
    this.#ports = ports;
  }

  start(scope: TaskScope): void {
    scope.spawn("resource slices of earlier drivers", (signal) => this.#wipe(undefined, signal));
  }

  /** The driver has come, or nothing of it is connected any more. */
  driverChanged(driver: string, isThere: boolean, scope: TaskScope): void {
    const absent = this.#absent.get(driver);
    if (isThere) {
      absent?.abort(new DOMException("the driver is back", "AbortError"));
      return;
    }
    if (absent !== undefined) return;
    const life = new LinkedSignal(scope.signal);
    this.#absent.set(driver, life);
    scope.spawn(`resource slices of ${driver}`, async () => {
      try {
        await this.#ports.clock.sleep(absentMs, life.signal);
        await this.#wipe(driver, life.signal);
      } catch (error) {
        if (!isAbort(error, life.signal)) throw error;
      } finally {
        life[Symbol.dispose]();
        this.#absent.delete(driver);
      }
    });
  }

  async #wipe(driver: string | undefined, signal: AbortSignal): Promise<void> {
    const { client, clock, log, random } = this.#ports;
    const ofDriver = driver === undefined ? "" : `,spec.driver=${driver}`;
    const fieldSelector = `spec.nodeName=${this.#nodeName}${ofDriver}`;
    for (let tries = 1; ; tries++) {
      try {
        await client.deleteCollection(resources.resourceSlices, {}, { fieldSelector }, signal);
        log.info("Removed resource slices that no driver publishes any more", { fieldSelector });
        return;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        if (tries === mostTries) {
          log.error("Could not remove resource slices that no driver publishes any more", error, { fieldSelector });
          return;
        }
        log.debug(2, "Could not remove resource slices yet", { fieldSelector, tries, err: error });
        await clock.sleep(firstRetryMs * 2 ** (tries - 1) * (1 + random() * jitter), signal);
      }
    }
  }
}
