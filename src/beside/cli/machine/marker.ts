import { randomUUID } from "node:crypto";
import { link, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { parse } from "node:path";
import { ifThere, savePrivateFile } from "../../../ground/base/index.ts";
import type { MachineLayout } from "./layout.ts";

/** What a machine remembers about itself. Its presence is also the leave to delete the directory. */
export interface MachineMarker {
  readonly nodeletMachine: 1;
  readonly runtime: MachineRuntime;
}

/** Who runs the pods: a containerd or a Docker of the machine's own, with the pods' subnet, or a runtime that was there before. */
export type MachineRuntime =
  | { readonly type: "private"; readonly subnet: string }
  | { readonly type: "docker"; readonly subnet: string }
  | { readonly type: "external"; readonly endpoint: string };

export async function readMarker(layout: MachineLayout): Promise<MachineMarker | undefined> {
  const text = await ifThere(readFile(layout.markerFile, "utf8"));
  // A marker without content was begun by a version that could be interrupted there, before it made anything else.
  if (text === undefined || text.trim() === "") return undefined;
  const marker = parsed(text);
  if (isMarker(marker)) return marker;
  throw new Error(
    `${layout.markerFile} is not the marker of a nodelet machine; found: ${text.slice(0, 200)}. ` +
      "If you are sure that the directory is one, bring the file back from a copy or choose another --state-dir",
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Takes an absent or empty directory for a machine. */
export async function claimStateDir(layout: MachineLayout, runtime: MachineRuntime): Promise<MachineMarker> {
  await mkdir(layout.stateDir, { recursive: true, mode: 0o755 });
  const { base } = parse(layout.markerFile);
  const unfinished = `${base}.`;
  const found = (await readdir(layout.stateDir)).filter((name) => name !== base && !name.startsWith(unfinished));
  if (found.length > 0) {
    throw new Error(
      `state directory ${layout.stateDir} holds files that nodelet did not make (${found.slice(0, 3).join(", ")}); ` +
        "choose an empty or absent directory with --state-dir",
    );
  }
  const marker: MachineMarker = { nodeletMachine: 1, runtime };
  // Whole or not there at all, and there once: of two that start at the same time, one finds the other's.
  const own = `${layout.markerFile}.${randomUUID()}`;
  await savePrivateFile(own, `${JSON.stringify(marker)}\n`);
  try {
    if ((await ifThere(readFile(layout.markerFile, "utf8")))?.trim() === "") await rm(layout.markerFile);
    await link(own, layout.markerFile);
  } finally {
    await rm(own);
  }
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
