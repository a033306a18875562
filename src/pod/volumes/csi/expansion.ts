import {
  type CsiCapabilities,
  type CsiClient,
  NodeExpandVolumeRequest,
  PluginError,
} from "../../../connections/plugins/index.ts";
import { growVolume } from "../attaching/growth.ts";
import type { WantedVolume } from "../kinds/kind.ts";
import type { CsiVolume } from "./csi-volume.ts";
import type { CsiPorts } from "./ports.ts";
import { capabilityOf, secretsOf } from "./requests.ts";

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
  if (!capabilities.expand) return;
  const grow = async ({ bytes }: { readonly bytes: bigint }): Promise<void> => {
    await client.expand(
      NodeExpandVolumeRequest.fromPartial({
        volumeId: volume.handle,
        volumePath: path,
        stagingTargetPath: stagingPath,
        capacityRange: { requiredBytes: bytes },
        volumeCapability: capabilityOf(volume, wanted.form, capabilities, undefined),
        secrets: await secretsOf(volume.expandSecret, ports, signal),
      }),
      signal,
    );
  };
  await growVolume({ wanted, readOnly: volume.readOnly, isInUse, grow, refusalOf }, ports, signal);
}

function refusalOf(error: unknown): "not now" | "infeasible" | undefined {
  switch (error instanceof PluginError ? error.code : undefined) {
    case "FailedPrecondition":
      return "not now";
    case "InvalidArgument":
    case "OutOfRange":
    case "NotFound":
      return "infeasible";
    default:
      return undefined;
  }
}
