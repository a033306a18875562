import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** Nothing has to be removed after us any more. */
export interface AfterUs {
  dismiss(): Promise<void>;
}

/**
 * Runs a program of this directory when this process ends before it says otherwise, also by a signal that nobody can
 * catch: a shell waits for its input to end, which the kernel sees to.
 */
export function runAfterUs(program: string, ...args: readonly string[]): AfterUs {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const script = 'read -r word; [ "$word" = done ] || exec "$0" --import tsx "$@"';
  const child = spawn("sh", ["-c", script, process.execPath, file, ...args], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    // Out of reach of a terminal's Ctrl-C.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const exited = once(child, "exit");
  child.unref();
  if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
  return {
    async dismiss() {
      child.ref();
      child.stdin.end("done\n");
      await exited;
    },
  };
}
