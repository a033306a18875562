import { DirectoryInUseError } from "../../../connections/host/index.ts";
import { type Clock, explain, isAbort, type Logger, type TaskScope, untilAborted } from "../../../ground/base/index.ts";

const checkName = "device-plugin";
const retryMs = 5_000;

/** The listener while it is open. */
export interface OpenedPlugins extends AsyncDisposable {
  /** Whether plugins have ever been here: something of them was in the directory. */
  readonly wereThere: boolean;
}

type ListenerHealth = { readonly state: "ok" } | { readonly state: "waiting" | "failed"; readonly reason: string };

interface PluginListenerPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly health: { report(name: string, health: ListenerHealth): void };
  readonly directory: string;
  /** Rejects while it can't, or another agent does. */
  readonly open: (signal: AbortSignal) => Promise<OpenedPlugins>;
}

/** Where device plugins register. Pods that need none run without it, so it is tried until it opens. */
export class PluginListener {
  wereThere = true;
  readonly #ports: PluginListenerPorts;
  #lastProblem: string | undefined;

  constructor(ports: PluginListenerPorts) {
    this.#ports = ports;
  }

  /** Resolves after the first try. */
  async open(scope: TaskScope): Promise<void> {
    const first = await this.#try(scope.signal);
    scope.spawn("device plugins", async (signal) => {
      let opened = first;
      while (opened === undefined) {
        await this.#ports.clock.sleep(retryMs, signal);
        opened = await this.#try(signal);
      }
      await using _ = opened;
      await untilAborted(signal);
    });
  }

  async #try(signal: AbortSignal): Promise<OpenedPlugins | undefined> {
    const { health, directory, log } = this.#ports;
    try {
      const opened = await this.#ports.open(signal);
      this.wereThere = opened.wereThere;
      health.report(checkName, { state: "ok" });
      return opened;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const what = "device plugin registration gRPC server failed and no device plugins can register";
      const reason = `device registration error: ${what}: ${explain(error)}`;
      // Another agent serves this machine's plugins: nothing is broken.
      health.report(checkName, { state: error instanceof DirectoryInUseError ? "waiting" : "failed", reason });
      // Another agent may have them for days.
      if (reason !== this.#lastProblem)
        log.error("Device plugins can't register; trying again", error, { directory, retryMs });
      this.#lastProblem = reason;
      return undefined;
    }
  }
}
