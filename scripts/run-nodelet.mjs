// Runs a command of bin/nodelet in place of the calling script.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export function runNodelet(args) {
  const program = fileURLToPath(new URL("../bin/nodelet", import.meta.url));
  const child = spawn(program, args, { stdio: "inherit" });
  // A terminal sends Ctrl-C and its own end to the command as well, which decides when to stop; we wait for it.
  for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.once("error", (error) => {
    console.error(`nodelet: cannot start ${program}: ${error.message}`);
    process.exitCode = 1;
  });
  child.once("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}
