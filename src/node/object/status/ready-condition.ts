import { missingResources, type NodeCondition } from "../../../ground/model/index.ts";
import type { NodeFacts } from "../ports.ts";
import { type ConditionContext, statusEvent } from "./conditions.ts";

/** All that makes a node not ready, in the order it is to be read. */
export function notReadyBecause(node: {
  readonly facts: Pick<NodeFacts, "runtime" | "shutdownProblem">;
  readonly storageProblem: () => string | undefined;
  readonly capacity: Readonly<Record<string, string>>;
  readonly localStorageIsolation: boolean;
}): readonly string[] {
  const runtime = node.facts.runtime();
  return [
    ...runtime.problems,
    runtime.networkProblem,
    node.storageProblem(),
    node.facts.shutdownProblem(),
    missingResources(node.capacity, node.localStorageIsolation),
  ].filter((problem) => problem !== undefined);
}

/** `problems`: why the node cannot run pods, in the order they are to be read; none when it can. */
export function readyCondition(
  problems: readonly string[],
  shortcoming: string | undefined,
  known: NodeCondition | undefined,
  { nodeName, now, recordEvent }: ConditionContext,
): NodeCondition {
  const isReady = problems.length === 0;
  const status = isReady ? "True" : "False";
  const warning = shortcoming === undefined ? "" : `. WARNING: ${shortcoming}`;
  const changed = known !== undefined && known.status !== status;
  if (changed) recordEvent(statusEvent(nodeName, isReady ? "NodeReady" : "NodeNotReady"));
  return {
    type: "Ready",
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: known === undefined || changed ? now : known.lastTransitionTime,
    reason: isReady ? "KubeletReady" : "KubeletNotReady",
    message: `${isReady ? "kubelet is posting ready status" : joined(problems)}${warning}`,
  };
}

/** One stands for itself, several in brackets, none twice. */
function joined(problems: readonly string[]): string {
  const distinct = [...new Set(problems)];
  return distinct.length === 1 ? (distinct[0] ?? "") : `[${distinct.join(", ")}]`;
}
