import { Signal } from "../../cri/index.ts";
import type { Container } from "../../model/index.ts";

/** The runtime's number for a signal's name; the runtime's default when the container names none. */
export function stopSignalOf(container: Container): Signal {
  const name = container.lifecycle?.stopSignal ?? "";
  const key = name.replace("+", "PLUS").replace("SIGRTMAX-", "SIGRTMAXMINUS");
  return signals.get(key) ?? Signal.RUNTIME_DEFAULT;
}

/** The name Kubernetes uses for the runtime's number; undefined for the runtime's default. */
export function stopSignalName(signal: Signal): string | undefined {
  if (signal === Signal.RUNTIME_DEFAULT) return undefined;
  return names.get(signal)?.replace("SIGRTMINPLUS", "SIGRTMIN+").replace("SIGRTMAXMINUS", "SIGRTMAX-");
}

const signals = new Map<string, Signal>(Object.entries(Signal));
const names = new Map<Signal, string>(Object.entries(Signal).map(([name, signal]) => [signal, name]));
