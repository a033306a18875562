import type { CSIDriver } from "../../../ground/model/index.ts";
import { StepError } from "../kinds/kind.ts";
import { attachmentName, type CsiVolume } from "./csi-volume.ts";
import type { CsiPorts } from "./ports.ts";

/**
 * What the attacher has left for the node. Throws while the volume is not attached yet, so that its task waits and tries
 * again; nothing is asked where nobody attaches volumes of this driver.
 */
export async function waitForAttach(
  volume: CsiVolume,
  driver: CSIDriver | undefined,
  { cluster, nodeName }: CsiPorts,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  if (volume.lifecycle === "Ephemeral" || driver?.spec.attachRequired === false) return {};
  const name = attachmentName(volume, nodeName);
  const fail = (message: string, cause?: unknown): StepError => new StepError("WaitForAttach", message, cause);
  const attachment = await cluster.attachment(name, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw fail(`volume ${volume.handle} has GET error for volume attachment ${name}: ${String(error)}`, error);
  });
  if (attachment === undefined) {
    throw fail(
      `volume ${volume.handle} has GET error for volume attachment ${name}: volumeattachments.storage.k8s.io "${name}" not found`,
    );
  }
  const { metadata, status } = attachment;
  if (metadata?.deletionTimestamp !== undefined) throw fail("volume attachment is being deleted");
  if (status?.attached !== true) {
    const reason = status?.attachError?.message;
    throw fail(reason ?? `volume ${volume.handle} is not attached for volume attachment ${name}`);
  }
  return status.attachmentMetadata ?? {};
}
