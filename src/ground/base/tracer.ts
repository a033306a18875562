/** What a span is about. */
export interface SpanStart {
  readonly name: string;
  /** "internal" unless it is a call to somebody, or of somebody. */
  readonly kind?: "internal" | "client" | "server";
  readonly attributes?: Readonly<Record<string, string | number>>;
  /** How a caller said which trace this belongs to, as its header has it. */
  readonly traceparent?: string | undefined;
  /**
   * A trace begins here, if chance wants it, whoever caused the work: what one sync sets off long after is no part of
   * it. Otherwise the span is one of a trace that is under way, or none at all.
   */
  readonly mayBegin?: true;
}

/** Told while a span is under way. */
export type NoteAttribute = (name: string, value: string | number) => void;

/** A span whose end is told by whoever began it. */
export interface OpenSpan {
  /** Told once. */
  end(failure?: string): void;
  /** Runs a part of the work as the span's: what it begins, and whom it asks, belongs to the span. */
  within<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Who hears of work as it goes, for traces. */
export interface Tracer {
  /** Runs the work as a span; what it begins within belongs to that span. */
  span<Result>(start: SpanStart, work: (note: NoteAttribute) => Promise<Result>): Promise<Result>;
  /** A span whose end is told later; undefined outside a trace. */
  begin(start: SpanStart): OpenSpan | undefined;
  /** The header by which a call to somebody says which trace it belongs to; undefined: to none. */
  traceparent(): string | undefined;
}

/** Where no traces are wanted, work costs what it costs. */
export const noTracer: Tracer = {
  span: (_start, work) => work(ignore),
  begin: () => undefined,
  traceparent: () => undefined,
};

function ignore(): void {}
