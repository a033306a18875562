// Runs a command of bin/nodelet in place of the calling script.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export function runNodelet(args) {
  const program = fileURLToPath(new URL("../bin/nodelet", import.meta.url));
  const child = spawn(program, args, { stdio: "inherit" });
  // Ctrl-C reaches the command too; it decides when to end, and we wait for it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.once("error", (error) => {
    console.error(`nodelet: cannot start ${program}: ${error.message}`);
    process.exitCode = 1;
  });
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}
