import type { Clock } from "../../../ground/base/index.ts";
import type { BusReply, ReceivedMessage } from "../dbus/index.ts";

/** As long as the kubelet waits; systemd needs it when it is reloading on a loaded machine. */
const jobTimeoutMs = 30_000;

/** Results that came before the answer that names their job; many more than calls are ever under way. */
const maxEarlyResults = 1_000;

/** Waits for the ends of systemd's jobs. systemd may tell the end of a job before it has told the job's name. */
export class UnitJobs {
  readonly #clock: Clock;
  readonly #early = new Map<string, string>();
  readonly #waiting = new Map<string, (result: string) => void>();
  #callsUnderWay = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `lost` rejects when no result can come any more. Resolves with systemd's word for the result, `done` if all is well. */
  async run(what: string, call: () => Promise<BusReply>, lost: Promise<never>): Promise<string> {
    this.#callsUnderWay++;
    try {
      const { sender, body } = await call();
      const key = keyOf(sender, body[0]);
      const early = this.#early.get(key);
      return early ?? (await this.#end(what, key, lost));
    } finally {
      this.#callsUnderWay--;
      if (this.#callsUnderWay === 0) this.#early.clear();
    }
  }

  /** A JobRemoved signal: u id, o job, s unit, s result. */
  removed({ sender, readBody }: ReceivedMessage): void {
    if (this.#callsUnderWay === 0) return;
    const [, job, , result] = readBody();
    const key = keyOf(sender, job);
    const end = this.#waiting.get(key);
    if (end !== undefined) {
      end(String(result));
      return;
    }
    this.#early.set(key, String(result));
    const [oldest] = this.#early.keys();
    if (this.#early.size > maxEarlyResults && oldest !== undefined) this.#early.delete(oldest);
  }

  async #end(what: string, key: string, lost: Promise<never>): Promise<string> {
    const result = new Promise<string>((resolve, reject) => {
      const timer = this.#clock.after(jobTimeoutMs, () => {
        this.#waiting.delete(key);
        reject(new Error(`Timed out waiting for systemd to ${what} (${jobTimeoutMs / 1000} s)`));
      });
      this.#waiting.set(key, (found) => {
        timer.cancel();
        this.#waiting.delete(key);
        resolve(found);
      });
    });
    try {
      return await Promise.race([result, lost]);
    } catch (error) {
      // So that neither the timer nor the entry outlives the connection.
      this.#waiting.get(key)?.("lost");
      throw error;
    }
  }
}

/** Anybody on the bus may send such a signal; it counts only from whoever gave us the job. */
function keyOf(sender: string | undefined, job: unknown): string {
  return `${sender ?? ""} ${String(job)}`;
}
