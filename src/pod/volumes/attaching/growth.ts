import { messageOf } from "../../../ground/base/index.ts";
import {
  type PersistentVolumeClaim,
  type PodEvent,
  parseQuantity,
  type RecordPodEvent,
  wholeUnits,
} from "../../../ground/model/index.ts";
import { StepError, type WantedVolume } from "../kinds/kind.ts";

/** Port: how the growth of a volume on this node is told of. */
export interface GrowthReports {
  reportResize(claim: PersistentVolumeClaim, report: ResizeReport, signal: AbortSignal): Promise<void>;
  recordClaimEvent(claim: PersistentVolumeClaim, event: PodEvent): void;
}

export type ResizeReport =
  | { readonly state: "in progress" }
  | { readonly state: "done"; readonly capacity: string }
  | { readonly state: "failed"; readonly isInfeasible: boolean; readonly message: string };

export interface GrowthPorts {
  readonly cluster: GrowthReports;
  readonly recordEvent: RecordPodEvent;
  readonly nodeName: string;
}

export interface Growth {
  readonly bytes: bigint;
  readonly bytesBefore: bigint;
  readonly capacity: string;
}

const notRequiredAnnotation = "volume.kubernetes.io/node-expansion-not-required";

/** The size that the volume should have by now, if the node has a part in making it so. */
export function wantedGrowth({ source }: WantedVolume): Growth | undefined {
  if (source.type !== "claim") return undefined;
  const { persistent, claim } = source;
  const capacity = persistent.spec?.capacity?.["storage"];
  const present = claim.status?.capacity?.["storage"];
  if (capacity === undefined || present === undefined) return undefined;
  if (parseQuantity(capacity) <= parseQuantity(present)) return undefined;
  if (claim.metadata?.annotations?.[notRequiredAnnotation] !== undefined) return undefined;
  const state = claim.status?.allocatedResourceStatuses?.["storage"];
  if (state !== "NodeResizePending" && state !== "NodeResizeInProgress") return undefined;
  return { bytes: wholeUnits(parseQuantity(capacity)), bytesBefore: wholeUnits(parseQuantity(present)), capacity };
}

export interface GrowthRequest {
  readonly wanted: WantedVolume;
  readonly readOnly: boolean;
  /** A pod has the volume already, and does not wait for its growth. */
  readonly isInUse: boolean;
  readonly grow: (growth: Growth) => Promise<void>;
  /** What a failure means: "not now" leaves the volume as it is, "infeasible" is for good. */
  readonly refusalOf?: (error: unknown) => "not now" | "infeasible" | undefined;
}

/** Has the file system of a volume grow whose disk has grown. Throws when the pod must wait for it. */
export async function growVolume(request: GrowthRequest, ports: GrowthPorts, signal: AbortSignal): Promise<void> {
  const { wanted, readOnly, isInUse, grow, refusalOf } = request;
  const growth = wantedGrowth(wanted);
  if (growth === undefined || wanted.source.type !== "claim") return;
  const { claim } = wanted.source;
  const announce = (event: PodEvent): void => {
    ports.recordEvent(wanted.pod, event);
    ports.cluster.recordClaimEvent(claim, event);
  };
  if (readOnly) {
    const message = `MountVolume.NodeExpandVolume failed for volume "${wanted.specName}" requested read-only file system`;
    announce({ type: "Warning", reason: "FileSystemResizeFailed", message });
    return;
  }
  await ports.cluster.reportResize(claim, { state: "in progress" }, signal);
  try {
    await grow(growth);
  } catch (error) {
    signal.throwIfAborted();
    const message = messageOf(error);
    const refusal = refusalOf?.(error);
    if (isInUse) {
      const text = `NodeExpandVolume.NodeExpandVolume failed for volume "${wanted.specName}" : ${message}`;
      ports.recordEvent(wanted.pod, { type: "Warning", reason: "VolumeResizeFailed", message: text });
    }
    // A volume that can't grow now is still a volume.
    if (refusal === "not now") return;
    const isInfeasible = refusal === "infeasible";
    await ports.cluster.reportResize(claim, { state: "failed", isInfeasible, message }, signal);
    if (isInfeasible || isInUse) return;
    throw new StepError("Setup while expanding", message, error);
  }
  await ports.cluster.reportResize(claim, { state: "done", capacity: growth.capacity }, signal);
  const message = `MountVolume.NodeExpandVolume succeeded for volume "${wanted.specName}" ${ports.nodeName}`;
  announce({ type: "Normal", reason: "FileSystemResizeSuccessful", message });
}
