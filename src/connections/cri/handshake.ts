import { type Clock, type Logger, messageOf } from "../../ground/base/index.ts";
import { CriError, criCodeOf } from "./errors.ts";
import type { RuntimeIdentity } from "./identity.ts";
import type { ImageService, RuntimeService } from "./services.ts";

/** The only version of the kubelet-runtime contract there is. */
const contractVersion = "0.1.0";
const retryMs = 500;
const logEveryMs = 15_000;
const answerWithinMs = 10_000;

/** The runtime speaks another contract; waiting will not change that. */
export class UnsupportedRuntimeError extends Error {
  override readonly name = "UnsupportedRuntimeError";
  readonly found: string;

  constructor(found: string) {
    super(`runtime api version is not supported: found "${found}", want "${contractVersion}"`);
    this.found = found;
  }
}

//   idle -> connecting -> ready
//               |-> refused        the runtime answered, but with another contract
export type HandshakeState =
  | { readonly phase: "idle" }
  | {
      readonly phase: "connecting";
      /** Wall-clock milliseconds. */
      readonly since: number;
      readonly attempts: number;
      readonly lastError: string | undefined;
    }
  /** `at`: on the clock's monotonic scale. */
  | { readonly phase: "ready"; readonly at: number; readonly identity: RuntimeIdentity }
  | { readonly phase: "refused"; readonly reason: string };

export interface HandshakePorts {
  readonly runtime: Pick<RuntimeService, "version">;
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** First contact with the runtime. A runtime that is not there yet is waited for, in the open. */
export class RuntimeHandshake {
  readonly #ports: HandshakePorts;
  #state: HandshakeState = { phase: "idle" };

  constructor(ports: HandshakePorts) {
    this.#ports = ports;
  }

  get state(): HandshakeState {
    return this.#state;
  }

  /** Resolves once both services have answered. Throws UnsupportedRuntimeError, or the signal's reason. */
  async run(signal: AbortSignal): Promise<RuntimeIdentity> {
    const { clock, log } = this.#ports;
    const since = clock.now();
    const startedAt = clock.monotonic();
    let loggedAt: number | undefined;
    for (let attempts = 1; ; attempts++) {
      try {
        this.#state = { phase: "connecting", since, attempts, lastError: this.#lastError() };
        const identity = await this.#attempt(signal);
        this.#state = { phase: "ready", at: clock.monotonic(), identity };
        log.info("container runtime is there", { runtime: identity.name, version: identity.version, attempts });
        return identity;
      } catch (error) {
        if (!(error instanceof CriError)) {
          if (error instanceof UnsupportedRuntimeError) this.#state = { phase: "refused", reason: error.message };
          throw error;
        }
        this.#state = { phase: "connecting", since, attempts, lastError: describe(error) };
      }
      const now = clock.monotonic();
      if (loggedAt === undefined || now - loggedAt >= logEveryMs) {
        loggedAt = now;
        const waitedSeconds = Math.round((now - startedAt) / 1000);
        log.warn("waiting for the container runtime", { waitedSeconds, attempts, error: this.#lastError() });
      }
      await clock.sleep(retryMs, signal);
    }
  }

  async #attempt(signal: AbortSignal): Promise<RuntimeIdentity> {
    const { runtime, images } = this.#ports;
    const options = { signal, timeoutMs: answerWithinMs };
    const answer = await runtime.version({ version: contractVersion }, options);
    if (answer.version !== contractVersion) throw new UnsupportedRuntimeError(answer.version);
    await images.imageFsInfo({}, options);
    return { name: answer.runtimeName, version: answer.runtimeVersion, apiVersion: answer.runtimeApiVersion };
  }

  #lastError(): string | undefined {
    return this.#state.phase === "connecting" ? this.#state.lastError : undefined;
  }
}

function describe(error: CriError): string {
  const text = messageOf(error);
  // Packages made for other container tools ship containerd with its CRI plugin switched off.
  if (criCodeOf(error) !== "Unimplemented") return text;
  return `${text} (the socket answers but offers no CRI v1; for containerd, remove "cri" from disabled_plugins in its config.toml)`;
}
