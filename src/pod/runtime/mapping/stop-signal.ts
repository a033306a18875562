import { Signal } from "../../../connections/cri/index.ts";
import type { Container } from "../../../ground/model/index.ts";

/** The runtime's number for a signal's name; the runtime's default when the container names none. */
export function stopSignalOf(container: Container): Signal {
  const name = container.lifecycle?.stopSignal ?? "";
  const key = name.replace("+", "PLUS").replace("SIGRTMAX-", "SIGRTMAXMINUS");
  return signals.get(key) ?? Signal.RUNTIME_DEFAULT;
}

const signals = new Map<string, Signal>(Object.entries(Signal));
