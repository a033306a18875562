// Computes the status of pods from what is observed, and remembers the newest one of each.
export { ApiReports } from "./api-reports.ts";
export { computePodStatus, finalPodStatus } from "./compute.ts";
export { withForeignConditions } from "./conditions.ts";
export { deleteApiPod } from "./final-deletion.ts";
export type { PendingResize, StatusInput, StatusNode, WaitingReason } from "./input.ts";
export { noteMilestones } from "./milestones.ts";
export { PodViews } from "./pod-views.ts";
export { rejectedStatus } from "./rejection.ts";
export { resizeEvent } from "./resize-events.ts";
export { StatusStore } from "./store.ts";
export { readTerminationText } from "./termination-message.ts";
export { TerminationTexts } from "./termination-message-reader.ts";
export { unmadeStatus } from "./unmade.ts";
export { type PodOutcome, type RunningPods, waitForPods } from "./wait-for-pods.ts";
