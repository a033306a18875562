import { readFile, unlink } from "node:fs/promises";
import { ifThere, saveFile } from "../../../ground/base/index.ts";

/** What is known of a CSI volume on disk; enough to have its driver take it away after a restart, without the API. */
export interface VolumeRecord {
  readonly driver: string;
  readonly handle: string;
  readonly lifecycle: "Persistent" | "Ephemeral";
  readonly attachment: string;
  /** The SELinux label that it was mounted with. */
  readonly label: string | undefined;
}

export function labelField({ label }: { readonly label?: string | undefined }): Record<string, string> {
  return label === undefined ? {} : { seLinuxMountContext: label };
}

/** Writes the record in the form that the Go kubelet writes, complete or not at all. */
export async function writeRecord(path: string, fields: Readonly<Record<string, string>>): Promise<void> {
  await saveFile(path, `${JSON.stringify(fields)}\n`, 0o644);
}

/** Removes the record, and what a crash left of an attempt to write it. */
export async function removeRecord(path: string): Promise<void> {
  for (const file of [path, temporaryOf(path)]) await ifThere(unlink(file));
}

function temporaryOf(path: string): string {
  return `${path}.tmp`;
}

/** "missing" when there is none, "damaged" when it can't be understood. */
export async function readRecord(path: string): Promise<VolumeRecord | "missing" | "damaged"> {
  const text = await ifThere(readFile(path, "utf8"));
  if (text === undefined) return "missing";
  try {
    const fields = JSON.parse(text) as Partial<Record<string, unknown>>;
    const { driverName, volumeHandle, volumeLifecycleMode, attachmentID, seLinuxMountContext } = fields as Record<
      string,
      unknown
    >;
    if (typeof driverName !== "string" || typeof volumeHandle !== "string") return "damaged";
    return {
      driver: driverName,
      handle: volumeHandle,
      lifecycle: volumeLifecycleMode === "Ephemeral" ? "Ephemeral" : "Persistent",
      attachment: typeof attachmentID === "string" ? attachmentID : "",
      label: typeof seLinuxMountContext === "string" && seLinuxMountContext !== "" ? seLinuxMountContext : undefined,
    };
  } catch {
    return "damaged";
  }
}
