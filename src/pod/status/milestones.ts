import type {} from "../../ground/base/index.ts";
import { type PodLedger, type PodStatus, uidOf } from "../../ground/model/index.ts";
import type { StatusStore } from "./store.ts";

/** Writes into the ledger what users ask for by these names: when a pod ran, was ready, when a container ended. */
export function noteMilestones(statuses: StatusStore, ledger: PodLedger): void {
  statuses.onChange((pod, status, before) => {
    const uid = uidOf(pod);
    if (status.phase !== before?.phase) {
      if (status.phase === "Running") ledger.note(uid, "running", "all containers were started");
      else if (before !== undefined) ledger.note(uid, "status", `phase ${before.phase} -> ${status.phase}`);
    }
    if (isReady(status) !== isReady(before)) ledger.note(uid, "ready", isReady(status) ? "ready" : "no longer ready");
    const known = new Set(ends(before).map(({ id }) => id));
    for (const { name, id, exitCode, reason } of ends(status)) {
      if (!known.has(id)) {
        ledger.note(uid, "exit", `exit code ${exitCode}${reason === "" ? "" : ` (${reason})`}`, name);
      }
    }
  });
}

function isReady(status: PodStatus | undefined): boolean {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

function ends(
  status: PodStatus | undefined,
): readonly { name: string; id: string; exitCode: number; reason: string }[] {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return all.flatMap(({ name, state, lastState }) =>
    [state?.terminated, lastState?.terminated].flatMap((ended) =>
      ended === undefined
        ? []
        : [{ name, id: ended.containerID ?? "", exitCode: ended.exitCode, reason: ended.reason ?? "" }],
    ),
  );
}
