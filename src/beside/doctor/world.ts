import type { Clock } from "../../ground/base/index.ts";
import type { HostFiles } from "./gather/files.ts";

/** What the doctor may look at. */
export interface ExaminedWorld {
  /** Where the machine begins: "/", or a directory with a made-up one. */
  readonly root: string;
  /** Files of the machine itself: /proc, /sys, /etc. */
  readonly machine: HostFiles;
  /** Files that the configuration names. */
  readonly files: HostFiles;
  readonly clock: Clock;
  /** On a machine that is busy all takes longer: so many times as long, and each bound is as much further away. */
  readonly patience: number;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  /** Flags of an agent whose configuration is examined, instead of that of the one that runs. */
  readonly flags: readonly string[];
  /** The local socket of the agent. */
  readonly socket: string;
  /** It was named: the agent there is meant, and no other. */
  readonly isChosen: boolean;
}
