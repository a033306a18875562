import type { LedgerView } from "../../../src/ground/base/index.ts";
import type { RunningAgent } from "../agent.ts";
import type { Simulation } from "../simulation.ts";

const entriesShown = 12;

/** Whether the ledger tells, while a container is being stopped, that it is and why. */
export function namesStop(view: LedgerView | undefined, container: string): boolean {
  return (
    view?.entries.some(
      ({ step, subject, outcome, message = "" }) =>
        step === "kill" && subject === container && outcome === "running" && message !== "",
    ) ?? false
  );
}

/** Whether the ledger tells that a container ended or was stopped; what it no longer holds may have told it. */
export function namesEnd(view: LedgerView | undefined, container: string): boolean {
  if (view === undefined || view.dropped > 0) return true;
  return view.entries.some(({ step, subject }) => (step === "kill" || step === "exit") && subject === container);
}

/** What the agent would say of each pod if it were asked now. */
export function ledgerLines({ agent, runtime }: Simulation): readonly string[] {
  if (agent === undefined) return [];
  const pods = new Map(
    runtime.fake.sandboxes().map(({ config: { metadata } }) => [metadata?.uid ?? "", metadata?.name]),
  );
  return [...pods].flatMap(([uid, name]) => linesOf(agent, uid, name ?? ""));
}

function linesOf(agent: RunningAgent, uid: string, name: string): readonly string[] {
  const view = agent.ledger(uid);
  if (view === undefined) return [`ledger of ${name}: empty`];
  const entries = view.entries.slice(-entriesShown).map(({ step, subject, outcome, message = "", startedAt }) => {
    const at = new Date(startedAt).toISOString().slice(11, 23);
    return `ledger of ${name}: ${at} ${step} ${subject} ${outcome} ${message}`;
  });
  const { blocker } = view;
  return blocker === undefined
    ? entries
    : [...entries, `ledger of ${name}: waits: ${blocker.reason} ${blocker.message}`];
}
