import { mkdir, readdir, writeFile } from "node:fs/promises";
import { readIfPresent } from "./files.ts";
import type { MachineLayout } from "./layout.ts";

/** What a machine remembers about itself. Its presence is also the leave to delete the directory. */
export interface MachineMarker {
  readonly nodeletMachine: 1;
  readonly runtime: MachineRuntime;
}

/** Whose containerd runs the pods: the machine's own, with the pods' subnet, or one that was there before. */
export type MachineRuntime =
  | { readonly type: "private"; readonly subnet: string }
  | { readonly type: "external"; readonly endpoint: string };

export async function readMarker(layout: MachineLayout): Promise<MachineMarker | undefined> {
  const text = await readIfPresent(layout.markerFile);
  if (text === undefined) return undefined;
  const marker: unknown = JSON.parse(text);
  if (isMarker(marker)) return marker;
  throw new Error(`${layout.markerFile} is not the marker of a nodelet machine; found: ${text.slice(0, 200)}`);
}

/** Takes an absent or empty directory for a machine. */
export async function claimStateDir(layout: MachineLayout, runtime: MachineRuntime): Promise<MachineMarker> {
  await mkdir(layout.stateDir, { recursive: true, mode: 0o755 });
  const found = await readdir(layout.stateDir);
  if (found.length > 0) {
    throw new Error(
      `state directory ${layout.stateDir} holds files that nodelet did not make (${found.slice(0, 3).join(", ")}); ` +
        "choose an empty or absent directory with --state-dir",
    );
  }
  const marker: MachineMarker = { nodeletMachine: 1, runtime };
  await writeFile(layout.markerFile, `${JSON.stringify(marker)}\n`, { flag: "wx" });
  return marker;
}

function isMarker(value: unknown): value is MachineMarker {
  return (
    typeof value === "object" &&
    value !== null &&
    "nodeletMachine" in value &&
    value.nodeletMachine === 1 &&
    "runtime" in value
  );
}
