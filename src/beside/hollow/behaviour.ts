/** One thing a simulated process does. After its last step it exits with code 0. */
export type Step =
  | { readonly do: "print"; readonly stream: OutputStream; readonly text: string }
  /** Writes a file; it becomes real only where a mount leads from the path to the host. */
  | { readonly do: "write"; readonly path: string; readonly text: string; readonly mode: "replace" | "append" }
  | { readonly do: "sleep"; readonly ms: number }
  | { readonly do: "sleepForever" }
  | { readonly do: "goTo"; readonly step: number }
  /** `reason` goes before the usual Completed or Error. */
  | { readonly do: "exit"; readonly code: number; readonly reason?: string };

export type OutputStream = "stdout" | "stderr";

/**
 * What SIGTERM does to it: nothing, death by the signal, or these steps instead of the present ones. `unhandled` is
 * what the kernel makes of a process without a handler: nothing for the first one of a pid namespace, else death.
 */
export type OnTerm = "ignore" | "die" | "unhandled" | readonly Step[];

export interface SimulatedUsage {
  readonly cpuMillicores: number;
  readonly memoryBytes: number;
}

export type Behaviour =
  | { readonly type: "failsToStart"; readonly message: string }
  | {
      readonly type: "runs";
      readonly steps: readonly Step[];
      readonly onTerm: OnTerm;
      readonly usage?: SimulatedUsage;
    };

export const exitCodeOfTerm = 143;
export const exitCodeOfKill = 137;

/** A well-behaved server: runs until asked to stop, then exits with 0 after `stopMs`. */
export function runsForever(stopMs = 0): Behaviour {
  const onTerm: Step[] = [
    { do: "sleep", ms: stopMs },
    { do: "exit", code: 0 },
  ];
  return { type: "runs", steps: [{ do: "sleepForever" }], onTerm };
}

/** Runs until killed: only SIGKILL ends it. */
export function ignoresTerm(): Behaviour {
  return { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "ignore" };
}

/** Runs for `ms`, then exits. */
export function exitsAfter(ms: number, code: number, reason?: string): Behaviour {
  const exit: Step = reason === undefined ? { do: "exit", code } : { do: "exit", code, reason };
  return { type: "runs", steps: [{ do: "sleep", ms }, exit], onTerm: "die" };
}

/** Does what the steps say, in order. */
export function does(steps: readonly Step[], onTerm: OnTerm = "die"): Behaviour {
  return { type: "runs", steps, onTerm };
}

/** StartContainer fails with the message, as for a missing program. */
export function failsToStart(message: string): Behaviour {
  return { type: "failsToStart", message };
}
