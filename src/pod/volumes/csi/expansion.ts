import {
  type CsiCapabilities,
  type CsiClient,
  NodeExpandVolumeRequest,
  PluginError,
} from "../../../connections/plugins/index.ts";
import { messageOf } from "../../../ground/base/index.ts";
import { type PodEvent, parseQuantity, wholeUnits } from "../../../ground/model/index.ts";
import { StepError, type WantedVolume } from "../kinds/kind.ts";
import type { CsiVolume } from "./csi-volume.ts";
import type { CsiPorts } from "./ports.ts";
import { capabilityOf, secretsOf } from "./requests.ts";

const notRequiredAnnotation = "volume.kubernetes.io/node-expansion-not-required";

/** The size that the volume should have by now, if the node has a part in making it so. */
export function wantedGrowth({
  source,
}: WantedVolume): { readonly bytes: bigint; readonly capacity: string } | undefined {
  if (source.type !== "claim") return undefined;
  const { persistent, claim } = source;
  const capacity = persistent.spec?.capacity?.["storage"];
  const present = claim.status?.capacity?.["storage"];
  if (capacity === undefined || present === undefined) return undefined;
  if (parseQuantity(capacity) <= parseQuantity(present)) return undefined;
  if (claim.metadata?.annotations?.[notRequiredAnnotation] !== undefined) return undefined;
  const state = claim.status?.allocatedResourceStatuses?.["storage"];
  if (state !== "NodeResizePending" && state !== "NodeResizeInProgress") return undefined;
  return { bytes: wholeUnits(parseQuantity(capacity)), capacity };
}

/** Has the driver grow the file system of a volume whose disk has grown. Throws when the pod must wait for it. */
export async function expandVolume(
  request: {
    readonly wanted: WantedVolume;
    readonly volume: CsiVolume;
    readonly client: CsiClient;
    readonly capabilities: CsiCapabilities;
    readonly path: string;
    readonly stagingPath: string;
    /** A pod has the volume already, and does not wait for its growth. */
    readonly isInUse: boolean;
  },
  ports: CsiPorts,
  signal: AbortSignal,
): Promise<void> {
  const { wanted, volume, client, capabilities, path, stagingPath, isInUse } = request;
  const growth = wantedGrowth(wanted);
  if (growth === undefined || !capabilities.expand || wanted.source.type !== "claim") return;
  const { claim } = wanted.source;
  const announce = (event: PodEvent): void => {
    ports.recordEvent(wanted.pod, event);
    ports.cluster.recordClaimEvent(claim, event);
  };
  if (volume.readOnly) {
    const message = `MountVolume.NodeExpandVolume failed for volume "${wanted.specName}" requested read-only file system`;
    announce({ type: "Warning", reason: "FileSystemResizeFailed", message });
    return;
  }
  await ports.cluster.reportResize(claim, { state: "in progress" }, signal);
  try {
    await client.expand(
      NodeExpandVolumeRequest.fromPartial({
        volumeId: volume.handle,
        volumePath: path,
        stagingTargetPath: stagingPath,
        capacityRange: { requiredBytes: growth.bytes },
        volumeCapability: capabilityOf(volume, wanted.form, capabilities, undefined),
        secrets: await secretsOf(volume.expandSecret, ports, signal),
      }),
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    const message = messageOf(error);
    const code = error instanceof PluginError ? error.code : undefined;
    if (isInUse) {
      const text = `NodeExpandVolume.NodeExpandVolume failed for volume "${wanted.specName}" : ${message}`;
      ports.recordEvent(wanted.pod, { type: "Warning", reason: "VolumeResizeFailed", message: text });
    }
    // A volume that can't grow now is still a volume.
    if (code === "FailedPrecondition") return;
    const isInfeasible = code === "InvalidArgument" || code === "OutOfRange" || code === "NotFound";
    await ports.cluster.reportResize(claim, { state: "failed", isInfeasible, message }, signal);
    if (isInfeasible || isInUse) return;
    throw new StepError("Setup while expanding", message, error);
  }
  await ports.cluster.reportResize(claim, { state: "done", capacity: growth.capacity }, signal);
  const message = `MountVolume.NodeExpandVolume succeeded for volume "${wanted.specName}" ${ports.nodeName}`;
  announce({ type: "Normal", reason: "FileSystemResizeSuccessful", message });
}
