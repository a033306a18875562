import { resolve } from "node:path";
import { type ConfigIo, complaintAbout } from "../../ground/config/index.ts";
import { RolloutRefusal } from "./ports.ts";
import type { LoadedVersion } from "./running.ts";
import { readVersion } from "./version.ts";

/** A configuration file that a person wants to try in place of that of --config. */
export interface TrialFile {
  /** Paths in it are relative to where it lies. */
  readonly path: string;
  readonly text: string;
  readonly forMs: number;
}

/** Loads it as the agent would at its start; throws with all that is wrong. */
export async function readTrialFile(
  file: Omit<TrialFile, "forMs">,
  argv: readonly string[],
  io: ConfigIo,
): Promise<LoadedVersion> {
  const path = resolve(io.cwd, file.path);
  const withFile: ConfigIo = {
    ...io,
    readFile: async (wanted) => (resolve(io.cwd, wanted) === path ? Buffer.from(file.text) : await io.readFile(wanted)),
  };
  const place = { source: { from: "trial", path }, words: [`--config=${path}`] } as const;
  const { version, loaded } = await readVersion(argv, place, withFile);
  if (loaded.kind === "config") return { version, config: loaded.config };
  throw new RolloutRefusal(loaded.kind === "invalid" ? complaintAbout(loaded) : "the agent would only print and end");
}
