// Computes the status of pods from what is observed, and remembers the newest one of each.
export { ApiReports } from "./api-reports.ts";
export { computePodStatus, finalPodStatus } from "./compute.ts";
export { withForeignConditions } from "./conditions.ts";
export { deleteApiPod } from "./final-deletion.ts";
export type { ContainerFlags, NodeFacts, StatusInput, WaitingReason } from "./input.ts";
export { noteMilestones } from "./milestones.ts";
export { PodViews } from "./pod-views.ts";
export { type StatusListener, StatusStore } from "./store.ts";
export { readTerminationText } from "./termination-text.ts";
export { TerminationTexts } from "./termination-texts.ts";
