import type { Logger } from "../../ground/base/index.ts";
import {
  describePod,
  type EventReason,
  fieldPathOf,
  type PodLedger,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import type { ProbeOutcome } from "./outcome.ts";
import type { ProbeKind, ProbeMeasurement, ProbeResult } from "./ports.ts";
import type { FinishedAttempt, ProbeSubject } from "./probe-worker.ts";

export interface ReporterPorts {
  readonly log: Logger;
  readonly recordEvent: RecordPodEvent;
  readonly ledger: Pick<PodLedger, "begin" | "note">;
  /** For metrics. */
  readonly onProbe?: ((measurement: ProbeMeasurement) => void) | undefined;
}

const kindNames: Readonly<Record<ProbeKind, string>> = {
  liveness: "Liveness",
  readiness: "Readiness",
  startup: "Startup",
};

const measuredAs = { success: "successful", warning: "successful", failure: "failed", error: "unknown" } as const;

/** Tells people and metrics what the probes find. */
export class ProbeReporter {
  readonly #ports: ReporterPorts;

  constructor(ports: ReporterPorts) {
    this.#ports = ports;
  }

  finished(subject: ProbeSubject, { outcome, durationMs, lateMs, isFirst }: FinishedAttempt): void {
    const { pod, container, containerKind, plan } = subject;
    const uid = uidOf(pod);
    this.#ports.onProbe?.({
      uid,
      namespace: pod.metadata.namespace,
      pod: pod.metadata.name,
      container: container.name,
      kind: plan.kind,
      result: measuredAs[outcome.type],
      durationMs,
      lateMs,
    });
    const event = eventOf(kindNames[plan.kind], outcome);
    if (isFirst) {
      const span = this.#ports.ledger.begin(uid, "probe", ledgerSubject(subject));
      if (event === undefined) span.end("first attempt succeeded");
      else span.fail(event.message);
    }
    if (event === undefined) return;
    const fieldPath = fieldPathOf(containerKind, container.name);
    this.#ports.recordEvent(pod, { type: "Warning", ...event, fieldPath });
  }

  decided(subject: ProbeSubject, before: ProbeResult, after: ProbeResult): void {
    const { pod, container, plan } = subject;
    this.#ports.ledger.note(uidOf(pod), "probe", `${before} -> ${after}`, ledgerSubject(subject));
    this.#ports.log.info("Probe result changed", {
      pod: describePod(pod),
      container: container.name,
      probe: plan.kind,
      before,
      after,
    });
  }
}

function ledgerSubject({ container, plan }: ProbeSubject): string {
  return `${container.name} ${plan.kind}`;
}

function eventOf(kind: string, outcome: ProbeOutcome): { reason: EventReason; message: string } | undefined {
  switch (outcome.type) {
    case "success":
      return undefined;
    case "warning":
      return { reason: "ProbeWarning", message: `${kind} probe warning: ${outcome.output}` };
    case "failure":
      return { reason: "Unhealthy", message: `${kind} probe failed: ${outcome.output}` };
    case "error":
      return {
        reason: "Unhealthy",
        message: `${kind} probe errored and resulted in ${outcome.state} state: ${outcome.message}`,
      };
  }
}
