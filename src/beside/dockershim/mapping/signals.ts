import { Signal } from "../../../connections/cri/index.ts";

/** Signals by number in Docker's spelling: SIGRTMINPLUS3 of CRI is SIGRTMIN+3. */
const names = new Map<Signal, string>(
  Object.entries(Signal).map(([name, signal]) => [
    signal,
    name.replace(/^SIGRTMINPLUS/, "SIGRTMIN+").replace(/^SIGRTMAXMINUS/, "SIGRTMAX-"),
  ]),
);

/** Docker's `StopSignal`, where a container is to have one of its own. */
export function signalName(signal: Signal): { StopSignal?: string } {
  const name = names.get(signal);
  return signal === Signal.RUNTIME_DEFAULT || name === undefined ? {} : { StopSignal: name };
}

/** The signal that asks a container to end, of Docker's name or number. */
export function signalOf(text: string): Signal {
  for (const [signal, name] of names) if (name === text || name === `SIG${text}`) return signal;
  return text === "" ? Signal.SIGTERM : Signal.RUNTIME_DEFAULT;
}
