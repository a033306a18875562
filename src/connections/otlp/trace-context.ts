/** Which trace a piece of work belongs to, and which span of it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
}

/** Reads a `traceparent` header; undefined where it is none, or where its trace is not recorded. */
export function sampledParent(header: string | undefined): TraceContext | undefined {
  if (header === undefined || header.length > 512) return undefined;
  const [, version, traceId = "", spanId = "", flags = ""] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(header) ?? [];
  // Later versions may say more; this one says exactly that.
  if (version === undefined || version === "ff" || (version === "00" && header.length !== 55)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return (Number.parseInt(flags, 16) & 1) === 1 ? { traceId, spanId } : undefined;
}

export function traceparentOf({ traceId, spanId }: TraceContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Whether chance wants this trace, by its id as every participant decides it. */
export function isSampled(traceId: string, perMillion: number): boolean {
  if (perMillion >= 1_000_000) return true;
  if (perMillion <= 0) return false;
  const bound = (BigInt(Math.round(perMillion)) << 63n) / 1_000_000n;
  return BigInt(`0x${traceId.slice(16)}`) >> 1n < bound;
}
