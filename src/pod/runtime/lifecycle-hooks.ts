import {
  type Clock,
  cutBytes,
  cutText,
  goQuote,
  LinkedSignal,
  lingering,
  messageOf,
  onAbort,
  type TaskScope,
  type Timer,
  waitFor,
} from "../../ground/base/index.ts";
import {
  type Container,
  type ContainerId,
  containerNamed,
  describePod,
  type EventReason,
  fieldPathOf,
  type HTTPGetAction,
  type IdentifiedPod,
  type LifecycleHandler,
  type PodLedger,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import { type ExecInContainer, HttpGetError, httpGet, httpTarget } from "../probes/index.ts";

export interface HookPorts {
  readonly clock: Clock;
  /** Owns hooks that outlive the grace they were given; they end with it at the latest. */
  readonly scope: TaskScope;
  readonly exec: ExecInContainer;
  /** The pod's addresses, asked of the runtime now: a hook may run before any status knows them. */
  readonly podIps: (pod: IdentifiedPod, signal: AbortSignal) => Promise<readonly string[]>;
  readonly recordEvent: RecordPodEvent;
  readonly ledger: Pick<PodLedger, "begin">;
  /** For metrics. */
  readonly onNotable?: (what: "plain HTTP" | "sleep cut short") => void;
}

/** A hook as it is run on one container. */
export interface HookRun {
  readonly pod: IdentifiedPod;
  readonly container: Container;
  readonly id: ContainerId;
  /** Fires when the container has ended by itself, which makes a sleep pointless and a command one of the past. */
  readonly containerEnded?: AbortSignal | undefined;
}

export type HookResult = { readonly type: "done" } | { readonly type: "failed"; readonly message: string };

const hookUserAgent = "kube-lifecycle/1.34";
const bodyLimitBytes = 10 * 1024;
/** As much as of a probe's output. Runtimes hand on up to 16 MiB, and quoting makes it four times as long. */
const outputLimitBytes = 10 * 1024;
/** A command may be as long as the API takes pods, and is told twice. */
const commandLimitBytes = 1024;
/** Room for the output once quoted. A path or a header may be as long as the API takes pods, too. */
const messageLimitBytes = 5 * outputLimitBytes;

/** So long a preStop hook goes on by itself. A server that never answers would keep a connection and the pod for ever. */
const afterGraceMs = 120_000;

/** A postStart hook may still answer after its container has ended. One that never does would hold its pod up for ever. */
const afterEndMs = 10_000;

/** Runs the postStart and preStop hooks of containers. */
export class LifecycleHooks {
  readonly #ports: HookPorts;

  constructor(ports: HookPorts) {
    this.#ports = ports;
  }

  /**
   * Runs the postStart hook, if there is one. After a failure, which an event has told, the container must be killed;
   * the message is for its status.
   */
  async postStart(run: HookRun, signal: AbortSignal): Promise<HookResult> {
    const handler = run.container.lifecycle?.postStart;
    if (handler === undefined) return { type: "done" };
    const result = await this.#recorded(run, "postStart", () => this.#runWhileItLives(handler, run, signal));
    if (result.type === "failed") this.#warn(run, "FailedPostStartHook", "PostStartHook failed");
    return result;
  }

  /**
   * Runs the preStop hook, if there is one; a failure becomes an event and the container is stopped anyway. When the
   * signal fires (the grace is over) the wait ends by rejecting, and the hook goes on by itself for a while: cutting it
   * off could leave its work half done, and the container is about to be stopped.
   */
  async preStop(run: HookRun, signal: AbortSignal): Promise<void> {
    const handler = run.container.lifecycle?.preStop;
    if (handler === undefined) return;
    signal.throwIfAborted();
    this.#ports.scope.signal.throwIfAborted();
    await waitFor(signal, (done, fail) => {
      this.#ports.scope.spawn(`preStop ${run.container.name}`, async (scopeSignal) => {
        try {
          const result = await lingering(this.#ports.clock, afterGraceMs, signal, async (late) => {
            using cut = new LinkedSignal(scopeSignal, late);
            return await this.#recorded(run, "preStop", () => this.run(handler, run, cut.signal));
          });
          if (result.type === "failed") this.#warn(run, "FailedPreStopHook", "PreStopHook failed");
          done();
        } catch (error) {
          // For whoever waits; when nobody does any more, the container is being stopped and the hook is history.
          fail(error);
        }
      });
      return () => {};
    });
  }

  async #runWhileItLives(handler: LifecycleHandler, run: HookRun, signal: AbortSignal): Promise<HookResult> {
    using cut = new LinkedSignal(signal);
    let timer: Timer | undefined;
    using _ = onAbort(run.containerEnded, () => {
      timer = this.#ports.clock.after(afterEndMs, () => cut.abort(new Error("container terminated")));
    });
    try {
      return await this.run(handler, run, cut.signal);
    } catch (error) {
      if (signal.aborted || !cut.signal.aborted) throw error;
      return { type: "failed", message: `Lifecycle hook ${failure(run, "container terminated before it finished")}` };
    } finally {
      timer?.cancel();
    }
  }

  /** Runs one handler to its end. Rejects only when aborted. */
  async run(handler: LifecycleHandler, run: HookRun, signal: AbortSignal): Promise<HookResult> {
    try {
      const result = await this.#handle(handler, run, signal);
      return result.type === "done" ? result : { type: "failed", message: cutText(result.message, messageLimitBytes) };
    } catch (error) {
      signal.throwIfAborted();
      // Whatever is odd about a handler is its pod's misfortune alone.
      return { type: "failed", message: cutText(`Cannot run handler: ${messageOf(error)}`, messageLimitBytes) };
    }
  }

  async #handle(handler: LifecycleHandler, run: HookRun, signal: AbortSignal): Promise<HookResult> {
    signal.throwIfAborted();
    const { exec, httpGet: http, sleep } = handler;
    if (exec !== undefined) return this.#exec(exec.command ?? [], run, signal);
    if (http !== undefined) return this.#http(http, run, signal);
    if (sleep !== undefined) return this.#sleep(sleep.seconds, run, signal);
    return { type: "failed", message: `Cannot run handler: invalid handler: ${describeHandler(handler)}` };
  }

  async #exec(command: readonly string[], run: HookRun, signal: AbortSignal): Promise<HookResult> {
    const line = cutText(command.join(" "), commandLimitBytes);
    const failed = (error: string, output: string): HookResult => ({
      type: "failed",
      message: `Exec lifecycle hook ([${line}]) ${failure(run, error)}, message: ${goQuote(output)}`,
    });
    try {
      const result = await this.#ports.exec(run.id, command, 0, signal);
      if (result.type === "timedOut") return failed(`command ${goQuote(line)} timed out`, "");
      const { exitCode, stdout, stderr } = result;
      if (exitCode === 0) return { type: "done" };
      const complaint = cutBytes(stderr, outputLimitBytes);
      const output = Buffer.concat([stdout.subarray(0, outputLimitBytes), stderr.subarray(0, outputLimitBytes)]);
      return failed(`command '${line}' exited with ${exitCode}: ${complaint}`, cutBytes(output, outputLimitBytes));
    } catch (error) {
      signal.throwIfAborted();
      return failed(cutText(messageOf(error), outputLimitBytes), "");
    }
  }

  async #http(action: HTTPGetAction, run: HookRun, signal: AbortSignal): Promise<HookResult> {
    try {
      await this.#request(action, run, signal);
      return { type: "done" };
    } catch (error) {
      signal.throwIfAborted();
      const message = `HTTP lifecycle hook (${action.path ?? ""}) ${failure(run, messageOf(error))}`;
      return { type: "failed", message };
    }
  }

  /** Any answer will do: the hook tells the container something, what it replies is its own affair. */
  async #request(action: HTTPGetAction, run: HookRun, signal: AbortSignal): Promise<void> {
    const host = action.host || (await this.#podIp(run.pod, signal));
    const { url, headers } = httpTarget(action, run.container, host, hookUserAgent);
    const request = { url, headers, timeoutMs: undefined, bodyLimitBytes };
    try {
      await answered(httpGet(request, this.#ports.clock, signal));
    } catch (error) {
      if (!(error instanceof HttpGetError && error.isPlainHttpAnswer)) throw error;
      const plain = httpTarget({ ...action, scheme: "HTTP" }, run.container, host, hookUserAgent);
      // What was meant for an encrypted connection must not travel in the clear.
      const fields = plain.headers.fields.filter(([name]) => name !== "Authorization");
      const retry = { ...request, url: plain.url, headers: { ...plain.headers, fields } };
      try {
        await answered(httpGet(retry, this.#ports.clock, signal));
      } catch {
        throw error;
      }
      const address = `${new URL(url.text).hostname}:${url.port}`;
      const message = `request to HTTPS lifecycle hook ${address} got HTTP response, retry with HTTP succeeded`;
      // About the pod as a whole, as upstream has it.
      this.#ports.recordEvent(run.pod, { type: "Warning", reason: "LifecycleHTTPFallback", message });
      this.#ports.onNotable?.("plain HTTP");
    }
  }

  async #podIp(pod: IdentifiedPod, signal: AbortSignal): Promise<string> {
    const [ip] = await this.#ports.podIps(pod, signal);
    if (ip === undefined) throw new Error("failed to find networking container: the pod has no IP");
    return ip;
  }

  async #sleep(seconds: number, run: HookRun, signal: AbortSignal): Promise<HookResult> {
    using cut = new LinkedSignal(signal, run.containerEnded);
    try {
      await this.#ports.clock.sleep(seconds * 1000, cut.signal);
      return { type: "done" };
    } catch {
      signal.throwIfAborted();
      this.#ports.onNotable?.("sleep cut short");
      const error = failure(run, "container terminated before sleep hook finished");
      return { type: "failed", message: `Sleep lifecycle hook (${seconds}) ${error}` };
    }
  }

  async #recorded(run: HookRun, name: string, work: () => Promise<HookResult>): Promise<HookResult> {
    const span = this.#ports.ledger.begin(uidOf(run.pod), "hook", `${run.container.name} ${name}`);
    try {
      const result = await span.within(work);
      if (result.type === "done") span.end();
      else span.fail(result.message);
      return result;
    } catch (error) {
      span.fail(messageOf(error));
      throw error;
    }
  }

  #warn({ pod, container }: HookRun, reason: EventReason, message: string): void {
    const kind = containerNamed(pod, container.name)?.kind ?? "regular";
    const fieldPath = fieldPathOf(kind, container.name);
    this.#ports.recordEvent(pod, { type: "Warning", reason, message, fieldPath });
  }
}

function failure({ pod, container }: HookRun, error: string): string {
  return `for Container ${goQuote(container.name)} in Pod ${goQuote(describePod(pod))} failed - error: ${error}`;
}

/** A body that breaks off is still an answer. */
async function answered(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof HttpGetError && error.phase === "body")) throw error;
  }
}

/** As the API's Go types print themselves. */
function describeHandler({ tcpSocket }: LifecycleHandler): string {
  if (tcpSocket === undefined) return "&LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:nil,Sleep:nil,}";
  const { port, host = "" } = tcpSocket;
  const goPort = typeof port === "number" ? `{0 ${port} }` : `{1 0 ${port}}`;
  return `&LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:&TCPSocketAction{Port:${goPort},Host:${host},},Sleep:nil,}`;
}
