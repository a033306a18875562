import { span } from "./ledger-text.ts";
import { type ProgressAnswer, progressText } from "./pull-text.ts";
import { textTable } from "./text-table.ts";

/** What the agent answers when asked what waits. */
export interface WaitingAnswer {
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly phase: string;
    readonly waitingFor: {
      readonly reason: string;
      readonly message: string;
      readonly since: number;
      readonly nextTryAt?: number;
      readonly progress?: ProgressAnswer;
    };
  }[];
  /** The agent's clock when it answered. */
  readonly now: number;
}

export function waitingText({ pods, now }: WaitingAnswer): string {
  if (pods.length === 0) return "Nothing waits on this node.\n";
  const rows = pods.map(({ namespace, name, phase, waitingFor }) => {
    const { reason, message, since, nextTryAt, progress } = waitingFor;
    return [
      `${namespace}/${name}`,
      phase,
      reason,
      span(Math.max(0, now - since)),
      nextTryAt === undefined ? "-" : nextTryAt > now ? `in ${span(nextTryAt - now)}` : "now",
      progress === undefined ? message : [progressText(progress), message].filter((text) => text !== "").join("; "),
    ];
  });
  const table = textTable([["POD", "PHASE", "WAITING FOR", "SINCE", "NEXT TRY", "MESSAGE"], ...rows]);
  return `${table.join("\n")}\n`;
}
