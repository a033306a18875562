import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import {
  type Clock,
  cutText,
  messageOf,
  type OpenSpan,
  redactText,
  type SpanStart,
  type Tracer,
} from "../../ground/base/index.ts";
import { TraceSpan } from "./gen/trace.ts";
import { isSampled, sampledParent, type TraceContext, traceparentOf } from "./trace-context.ts";

export interface OtlpTracerPorts {
  readonly clock: Clock;
  /** Takes spans that are over; never waits. */
  readonly add: (span: TraceSpan) => void;
}

interface OpenContext extends TraceContext {
  isOpen: boolean;
}

const kinds = { internal: 1, server: 2, client: 3 } as const;
const failed = 2;
/** Names and messages come from pods and servers. */
const longestTextBytes = 1024;

/**
 * Makes spans of work. Which trace a piece of work belongs to follows it through everything it awaits; that costs every
 * promise of the process something, so this is loaded only where traces are wanted.
 */
export class OtlpTracer implements Tracer {
  readonly #perMillion: number;
  readonly #ports: OtlpTracerPorts;
  readonly #current = new AsyncLocalStorage<OpenContext | undefined>();

  /** Of a million traces that may begin here, so many do; those that others have begun are followed anyway. */
  constructor(samplingRatePerMillion: number, ports: OtlpTracerPorts) {
    this.#perMillion = samplingRatePerMillion;
    this.#ports = ports;
  }

  span: Tracer["span"] = async (start, work) => {
    const open = this.#open(start);
    if (open === undefined) return await this.#current.run(undefined, () => work(() => {}));
    try {
      const result = await this.#current.run(open.context, () => work(open.note));
      open.end();
      return result;
    } catch (error) {
      open.end(messageOf(error));
      throw error;
    }
  };

  begin(start: SpanStart): OpenSpan | undefined {
    const open = this.#open(start);
    return open && { end: open.end, within: (work) => this.#current.run(open.context, work) };
  }

  traceparent(): string | undefined {
    const context = this.#inContext();
    return context === undefined ? undefined : traceparentOf(context);
  }

  /** Timers and loops that work has left behind remember where they come from; once its span is over, they are none of it. */
  #inContext(): OpenContext | undefined {
    const context = this.#current.getStore();
    return context?.isOpen === true ? context : undefined;
  }

  #open({ name, kind = "internal", attributes = {}, traceparent, mayBegin }: SpanStart) {
    const parent = sampledParent(traceparent) ?? (mayBegin ? undefined : this.#inContext());
    const traceId = parent?.traceId ?? (mayBegin ? this.#newTrace() : undefined);
    if (traceId === undefined) return undefined;
    const { clock, add } = this.#ports;
    const context: OpenContext = { traceId, spanId: randomBytes(8).toString("hex"), isOpen: true };
    const noted = new Map<string, string | number>(Object.entries(attributes));
    const startedAt = clock.now();
    const from = clock.monotonic();
    const end: OpenSpan["end"] = (failure) => {
      context.isOpen = false;
      const startTimeUnixNano = nanos(startedAt);
      add(
        TraceSpan.fromPartial({
          traceId: Buffer.from(traceId, "hex"),
          spanId: Buffer.from(context.spanId, "hex"),
          parentSpanId: Buffer.from(parent?.spanId ?? "", "hex"),
          name: told(name),
          kind: kinds[kind],
          startTimeUnixNano,
          // The wall clock may be set meanwhile; how long it took is known better.
          endTimeUnixNano: startTimeUnixNano + nanos(clock.monotonic() - from),
          attributes: [...noted].map(([key, value]) => ({ key, value: valueOfAttribute(value) })),
          ...(failure !== undefined && { status: { code: failed, message: told(failure) } }),
        }),
      );
    };
    const note = (key: string, value: string | number): void => void noted.set(key, value);
    return { context, end, note };
  }

  /** undefined: chance does not want it. */
  #newTrace(): string | undefined {
    const traceId = randomBytes(16).toString("hex");
    return isSampled(traceId, this.#perMillion) ? traceId : undefined;
  }
}

/** A collector is read by as many people as a log. */
function told(text: string): string {
  return cutText(redactText(text), longestTextBytes);
}

function nanos(ms: number): bigint {
  return BigInt(Math.max(0, Math.round(ms * 1000))) * 1000n;
}

function valueOfAttribute(value: string | number) {
  if (typeof value === "string") return { stringValue: told(value) };
  return { intValue: BigInt(Math.round(value)) };
}
