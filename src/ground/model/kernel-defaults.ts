/** What pods are promised of the kernel: memory may be promised twice, and a machine that panics comes back. */
export const kernelDefaults = [
  ["vm/overcommit_memory", 1],
  ["vm/panic_on_oom", 0],
  ["kernel/panic", 10],
  ["kernel/panic_on_oops", 1],
  ["kernel/keys/root_maxkeys", 1_000_000],
  ["kernel/keys/root_maxbytes", 25_000_000],
] as const;
