import { type Clock, isAbort, type Logger, messageOf, never, waitFor } from "../../ground/base/index.ts";
import { callOnce } from "../../ground/grpc/index.ts";
import type { CollectorEndpoint } from "./endpoint.ts";
import { type ExportTraceServiceRequest, TraceServiceDefinition, type TraceSpan } from "./gen/trace.ts";

export interface SpanExporterSettings {
  readonly endpoint: CollectorEndpoint;
  /** What all spans have in common: who sends them. */
  readonly resource: Readonly<Record<string, string>>;
  readonly scope: { readonly name: string; readonly version: string };
  /** How long spans are gathered before they are brought, and how long that may take. */
  readonly gatherMs?: number;
  readonly exportMs?: number;
}

export interface SpanExporterPorts {
  readonly clock: Clock;
  readonly log: Logger;
}

/** More are not kept: spans are for looking at, not for keeping. */
const mostWaiting = 2048;
const mostAtOnce = 512;
const usualGatherMs = 5_000;
const longestPauseMs = 60_000;
const usualExportMs = 10_000;
const lastExportMs = 1_000;
const mostAnswerBytes = 64 * 1024;

/**
 * Brings spans to the collector, some at a time. Nobody waits for it: a collector that is dead, slow or talks rubbish
 * costs the spans it does not take, and pauses that grow.
 */
export class SpanExporter {
  readonly #settings: SpanExporterSettings;
  readonly #ports: SpanExporterPorts;
  #waiting: TraceSpan[] = [];
  #dropped = 0;
  #failures = 0;
  #wake: (() => void) | undefined;

  constructor(settings: SpanExporterSettings, ports: SpanExporterPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  /** Spans that were not kept because too many waited. */
  get dropped(): number {
    return this.#dropped;
  }

  readonly add = (span: TraceSpan): void => {
    if (this.#waiting.length >= mostWaiting) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(span);
    this.#wake?.();
  };

  /** Brings them until aborted; has no timer while there is nothing to bring. */
  async run(signal: AbortSignal): Promise<void> {
    const { gatherMs = usualGatherMs, exportMs = usualExportMs } = this.#settings;
    try {
      for (;;) {
        await this.#untilWanted(signal);
        await this.#ports.clock.sleep(Math.min(gatherMs * 2 ** this.#failures, longestPauseMs), signal);
        while (this.#waiting.length > 0 && (await this.#export(exportMs, signal)));
      }
    } catch (error) {
      if (!isAbort(error, signal)) throw error;
      // What ended the agent may be the most interesting; a collector that has failed gets no last words.
      if (this.#waiting.length > 0 && this.#failures === 0) await this.#export(lastExportMs, never);
      throw error;
    }
  }

  async #untilWanted(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length > 0) return;
    await waitFor(signal, (resolve) => {
      this.#wake = () => resolve(undefined);
      return () => {
        this.#wake = undefined;
      };
    });
  }

  /** True: they were taken. Those that were not are gone. */
  async #export(withinMs: number, signal: AbortSignal): Promise<boolean> {
    const { clock, log } = this.#ports;
    const spans = this.#waiting.splice(0, mostAtOnce);
    try {
      const target = await this.#settings.endpoint.resolve(signal);
      await callOnce(target, TraceServiceDefinition, "export", this.#request(spans), {
        deadline: clock.now() + withinMs,
        signal,
        maxMessageBytes: mostAnswerBytes,
      });
      if (this.#failures > 0) log.info("Traces are delivered again", { endpoint: this.#settings.endpoint.shown });
      this.#failures = 0;
      return true;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#failures++;
      const said = { endpoint: this.#settings.endpoint.shown, spans: spans.length, problem: messageOf(error) };
      if (this.#failures === 1) log.warn("Traces can't be delivered and are dropped", said);
      else log.debug(4, "Traces can't be delivered", said);
      return false;
    }
  }

  #request(spans: TraceSpan[]): ExportTraceServiceRequest {
    const { resource, scope } = this.#settings;
    const attributes = Object.entries(resource).map(([key, value]) => ({
      key,
      value: { stringValue: value, intValue: undefined },
    }));
    return { resourceSpans: [{ resource: { attributes }, scopeSpans: [{ scope, spans }] }] };
  }
}
