import { type Clock, loadedPart } from "../../ground/base/index.ts";
import { clip, type ProbeOutcome } from "./outcome.ts";
import type { ExecInContainer } from "./ports.ts";
import { ExecProber, type ExecProbeSettings } from "./probe-exec.ts";
import { probeHttp } from "./probe-http.ts";
import { probeTcp } from "./probe-tcp.ts";
import type { ProbeTarget } from "./target.ts";

/** Carries out one attempt. Resolves with what was found; rejects only when aborted. */
export type RunProbe = (target: ProbeTarget, timeoutMs: number, signal: AbortSignal) => Promise<ProbeOutcome>;

/** The real attempts: commands in containers, HTTP, TCP and gRPC. */
export function probeRunner(exec: ExecInContainer, clock: Clock, settings: ExecProbeSettings): RunProbe {
  const commands = new ExecProber(exec, clock, settings);
  return async (target, timeoutMs, signal) => clipped(await run(target, timeoutMs, signal));

  async function run(target: ProbeTarget, timeoutMs: number, signal: AbortSignal): Promise<ProbeOutcome> {
    switch (target.type) {
      case "exec":
        return commands.probe(target, timeoutMs, signal);
      case "http":
        return probeHttp(target, timeoutMs, clock, signal);
      case "tcp":
        return probeTcp(target, timeoutMs, clock, signal);
      case "grpc": {
        // Few pods use it.
        const { probeGrpc } = await loadedPart(import("./probe-grpc.ts"));
        return probeGrpc(target, timeoutMs, clock, signal);
      }
    }
  }
}

function clipped(outcome: ProbeOutcome): ProbeOutcome {
  switch (outcome.type) {
    case "success":
      return outcome;
    case "warning":
    case "failure":
      return { ...outcome, output: clip(outcome.output) };
    case "error":
      return { ...outcome, message: clip(outcome.message) };
  }
}
