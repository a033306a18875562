// In place of pod/probes/probe-tcp.ts.
import type { Clock } from "../../../src/ground/base/index.ts";
import type { ProbeOutcome } from "../../../src/pod/probes/outcome.ts";
import type { ProbeTarget } from "../../../src/pod/probes/target.ts";
import { dial } from "./dial.ts";

export async function probeTcp(
  { host, port }: ProbeTarget & { readonly type: "tcp" },
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  const outcome = await dial(host, port, timeoutMs, clock, signal);
  return outcome === "accepts"
    ? { type: "success" }
    : { type: "failure", output: `dial tcp ${host}:${port}: ${outcome}` };
}
