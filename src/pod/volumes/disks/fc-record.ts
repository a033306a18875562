import { readFile, unlink } from "node:fs/promises";
import { basename } from "node:path";
import { ifThere, saveFile } from "../../../ground/base/index.ts";

/** How a Fibre Channel disk is told: by the ports it is behind and its unit there, or by names of its own. */
export type FcAddress =
  | { readonly by: "wwns"; readonly wwns: readonly string[]; readonly lun: number }
  | { readonly by: "wwids"; readonly wwids: readonly string[] };

export function fcDirectory(address: FcAddress): string {
  return address.by === "wwns" ? `${address.wwns.join("-")}-lun-${address.lun}` : address.wwids.join("-");
}

/** The reverse of `fcDirectory`, as far as that goes: a name with a dash in it becomes two. */
export function addressNamed(directory: string): FcAddress | undefined {
  const parts = directory.split("-");
  const [word, lun = ""] = parts.slice(-2);
  if (parts.length < 2 || word !== "lun") return { by: "wwids", wwids: parts };
  if (parts.length === 2 || !/^\d+$/.test(lun)) return undefined;
  return { by: "wwns", wwns: parts.slice(0, -2), lun: Number(lun) };
}

/**
 * Beside the place, where the Go kubelet does not look: whoever chose the name of a disk could have its pieces taken for
 * names of other disks.
 */
function recordOf(place: string): string {
  return `${place}.json`;
}

export async function writeFcRecord(place: string, address: FcAddress): Promise<void> {
  await saveFile(recordOf(place), `${JSON.stringify(address)}\n`, 0o644);
}

/** What was written, or else what the name of the place says: the Go kubelet's has nothing more. */
export async function readFcRecord(place: string): Promise<FcAddress | undefined> {
  const named = addressNamed(basename(place));
  const text = await ifThere(readFile(recordOf(place), "utf8"));
  if (text === undefined) return named;
  try {
    const address = JSON.parse(text) as FcAddress;
    return fcDirectory(address) === basename(place) ? address : named;
  } catch {
    return named;
  }
}

export async function removeFcRecord(place: string): Promise<void> {
  for (const file of [recordOf(place), `${recordOf(place)}.tmp`]) await ifThere(unlink(file));
}
