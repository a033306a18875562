import type { Logger } from "../../../ground/base/index.ts";
import { notifySystemd, type ServiceNotice } from "./notify.ts";

/** What the service manager (systemd) put into the environment. */
export interface ServiceEnvironment {
  readonly notifySocket: string | undefined;
  readonly watchdogUsec: string | undefined;
  readonly watchdogPid: string | undefined;
}

/** Tells the service manager how the agent is doing. Without one, or when it does not listen, the agent goes on. */
export class ServiceManager {
  readonly #notifySocket: string | undefined;
  readonly #log: Logger;

  constructor(notifySocket: string | undefined, log: Logger) {
    this.#notifySocket = notifySocket === "" ? undefined : notifySocket;
    this.#log = log;
  }

  /** True when there is somebody to tell. */
  get listens(): boolean {
    return this.#notifySocket !== undefined;
  }

  async tell(notice: ServiceNotice): Promise<void> {
    try {
      await this.send(notice);
    } catch (error) {
      this.#log.warn("Could not notify the service manager", { notice, error });
    }
  }

  /** As `tell`, for a caller that tries again. */
  async send(notice: ServiceNotice): Promise<void> {
    if (this.#notifySocket !== undefined) await notifySystemd(this.#notifySocket, notice);
  }
}
