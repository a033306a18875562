import { CriError, type RuntimeService } from "../../connections/cri/index.ts";
import { aFewAtOnce, type Clock, type Logger, messageOf, settleAtMost, withDeadline } from "../../ground/base/index.ts";
import {
  type Container,
  containerNamed,
  fieldPathOf,
  type IdentifiedPod,
  type ObservedContainer,
  type ObservedPod,
  type PodLedger,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import { TerminationOrder } from "./termination-order.ts";

/** Shorter stops have been seen to lose output of well-behaved containers; the kubelet never sends less either. */
const shortestStopSeconds = 2;

/** Stops containers the way their users asked for: preStop hook, then SIGTERM, then SIGKILL when the grace is over. */
export class ContainerKiller {
  readonly #ports: KillPorts;

  constructor(ports: KillPorts) {
    this.#ports = ports;
  }

  /** Stops one container, its pod goes on. */
  async killContainer(request: KillContainerRequest, signal: AbortSignal): Promise<void> {
    const deadline = this.#ports.clock.monotonic() + request.graceSeconds * 1000;
    await this.#kill(request, request.message, { deadline, shortestSeconds: shortestStopSeconds }, undefined, signal);
  }

  /**
   * Stops all running containers and then every sandbox of the pod. `deadline` is when the grace ends; a second
   * attempt passes the same one, and the hooks already run.
   */
  async killPod(request: KillPodRequest, signal: AbortSignal): Promise<void> {
    const { pod, observed, deadline } = request;
    const running = observed.containers.filter(({ state }) => state === "running" || state === "unknown");
    const order =
      pod === undefined
        ? undefined
        : new TerminationOrder(
            pod,
            running.map(({ name }) => name),
          );
    // All at once, whatever their number: some wait for others to stop, and must not take their turn.
    const results = await settleAtMost(running.length, running, async (container) => {
      await this.#kill(
        {
          pod: pod ?? podOfRecords(observed, container),
          container,
          preStopDone: request.preStopDone,
          message: undefined,
        },
        request.why,
        { deadline, shortestSeconds: request.atOnce ? 0 : shortestStopSeconds },
        order,
        signal,
      );
      order?.stopped(container.name);
    });
    throwFirst(results);
    const stops = await settleAtMost(aFewAtOnce, observed.sandboxes, async ({ id, state }) => {
      const span = this.#ports.ledger.begin(observed.uid, "stop", `sandbox ${id.slice(0, 12)}`);
      try {
        await span.within(() => ignoreMissing(this.#ports.runtime.stopPodSandbox({ podSandboxId: id }, { signal })));
        span.end();
      } catch (error) {
        span.fail(messageOf(error));
        if (state === "ready" || signal.aborted) throw error;
        // Nothing runs in it any more, only its network is not freed, and may never be: a power cut leaves records of
        // network plugins empty, and the runtime then fails for good. The garbage collector goes on trying.
        const why = { pod: observed.name, namespace: observed.namespace, sandbox: id, err: messageOf(error) };
        this.#ports.log.warn("Continuing although the network of a dead sandbox was not released", why);
      }
    });
    throwFirst(stops);
  }

  async #kill(
    request: Omit<KillContainerRequest, "graceSeconds">,
    why: string | undefined,
    { deadline, shortestSeconds }: { readonly deadline: number; readonly shortestSeconds: number },
    order: TerminationOrder | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { pod, container } = request;
    const { clock, runtime, recordEvent, ledger } = this.#ports;
    const spec = containerNamed(pod, container.name);
    if (spec !== undefined) {
      const message = request.message ?? `Stopping container ${container.name}`;
      recordEvent(pod, {
        type: "Normal",
        reason: "Killing",
        message,
        fieldPath: fieldPathOf(spec.kind, container.name),
      });
    }
    const span = ledger.begin(uidOf(pod), "kill", container.name, why);
    try {
      if (spec !== undefined) await span.within(() => this.#preStop(request, pod, spec.container, deadline, signal));
      if (order !== undefined)
        await this.#withDeadline(deadline, signal, (until) => order.turnOf(container.name, until));
      // Rounded up: a hook that took a moment must not cost the container a whole second of its grace.
      const remainingSeconds = Math.ceil((deadline - clock.monotonic()) / 1000);
      const timeout = BigInt(Math.max(remainingSeconds, shortestSeconds));
      const stopping = { containerId: container.id, timeout };
      await span.within(() => ignoreMissing(runtime.stopContainer(stopping, { signal })));
      span.end();
    } catch (error) {
      span.fail(messageOf(error));
      throw error;
    }
  }

  async #preStop(
    { container, preStopDone }: Omit<KillContainerRequest, "graceSeconds">,
    pod: IdentifiedPod,
    spec: Container,
    deadline: number,
    signal: AbortSignal,
  ): Promise<void> {
    const hook = spec.lifecycle?.preStop;
    if (hook === undefined || preStopDone.has(container.id) || deadline <= this.#ports.clock.monotonic()) return;
    preStopDone.add(container.id);
    // A hook that outlives the grace is abandoned, not waited for.
    await this.#withDeadline(deadline, signal, (until) => this.#ports.runPreStop(pod, spec, container, until));
  }

  /** Runs work under a signal that also fires at the deadline; work that ends by it is no error. */
  async #withDeadline(
    deadline: number,
    signal: AbortSignal,
    work: (until: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.#ports;
    let isLate = false;
    const late = (): DOMException => {
      isLate = true;
      return new DOMException("the termination grace is over", "AbortError");
    };
    try {
      await withDeadline(clock, deadline - clock.monotonic(), late, signal, work);
    } catch (error) {
      if (signal.aborted || !isLate) throw error;
    }
  }
}

export interface KillPorts {
  readonly runtime: RuntimeService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  /** Runs the hook; a failing hook is reported by an event and does not throw. */
  readonly runPreStop: (
    pod: IdentifiedPod,
    spec: Container,
    container: ObservedContainer,
    signal: AbortSignal,
  ) => Promise<void>;
}

export interface KillContainerRequest {
  readonly pod: IdentifiedPod;
  readonly container: ObservedContainer;
  readonly graceSeconds: number;
  readonly message: string | undefined;
  /** Ids whose hook has run in an earlier attempt. */
  readonly preStopDone: Set<string>;
}

export interface KillPodRequest {
  /** undefined: only the runtime knows the pod. */
  readonly pod: IdentifiedPod | undefined;
  readonly observed: ObservedPod;
  /** On the scale of the clock that is never set: grace neither grows nor shrinks when the time of day does. */
  readonly deadline: number;
  /** Nobody is asked to end: no hook, no SIGTERM. */
  readonly atOnce?: boolean;
  /** For those who ask the ledger why it stopped. */
  readonly why: string;
  readonly preStopDone: Set<string>;
}

/** As much of a pod that only the runtime knows as its container tells: enough to stop it the way its users asked for. */
function podOfRecords(
  { uid, name, namespace, sandboxes }: ObservedPod,
  { name: containerName, sandboxId, annotations }: ObservedContainer,
): IdentifiedPod {
  const { preStop, ports } = annotations;
  const onHostNetwork = sandboxes.some(({ id, network }) => id === sandboxId && network === "node");
  return {
    metadata: { name, namespace, uid },
    spec: {
      hostNetwork: onHostNetwork,
      containers: [
        {
          name: containerName,
          ...(ports === undefined ? {} : { ports }),
          ...(preStop === undefined ? {} : { lifecycle: { preStop } }),
        },
      ],
    },
  };
}

async function ignoreMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof CriError && error.code === "NotFound")) throw error;
  }
}

function throwFirst(results: readonly PromiseSettledResult<void>[]): void {
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
