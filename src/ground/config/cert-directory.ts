import { join } from "node:path";
import type { AgentConfig } from "./agent-config.ts";

/** An agent with a root directory of its own keeps to it, unless it is told where certificates go. */
export function certDirOf({ flags, origins }: AgentConfig, rootDir: string): string {
  return origins["--cert-dir"] === undefined ? join(rootDir, "pki") : flags.certDir;
}
