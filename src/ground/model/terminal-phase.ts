/** A pod in such a phase has ended for good: nothing of it runs again. */
export function isTerminalPhase(phase: string | undefined): phase is "Succeeded" | "Failed" {
  return phase === "Succeeded" || phase === "Failed";
}
