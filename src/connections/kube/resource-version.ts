interface Versioned {
  readonly metadata?: { readonly resourceVersion?: string | undefined } | undefined;
}

/** Whether `a` was made after `b`, as far as the server's versions tell: what they do not tell is not newer. */
export function isNewer(a: Versioned, b: Versioned | undefined): boolean {
  const [of, than] = [a.metadata?.resourceVersion ?? "", b?.metadata?.resourceVersion ?? "0"];
  return /^\d+$/.test(of) && /^\d+$/.test(than) && BigInt(of) > BigInt(than);
}
