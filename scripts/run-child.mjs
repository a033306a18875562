// A program in place of the calling script, which ends when the program has: with signals passed on, so that one that ends
// the script does not leave the program behind.
import { spawn } from "node:child_process";
import { once } from "node:events";

/** How often a script of npm looks whether npm is still there. */
const lookEveryMs = 1_000;

/** Runs node with these arguments and returns the exit code. */
export async function runNode(args, options) {
  const child = spawn(process.execPath, args, { ...options, stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  // A signal to npm ends npm and the shell between us, which passes nothing on: we are told by having another parent.
  const parent = process.ppid;
  const looking = setInterval(() => process.ppid !== parent && child.kill("SIGTERM"), lookEveryMs);
  if (process.env.npm_lifecycle_event === undefined) clearInterval(looking);
  const [code, signal] = await once(child, "exit");
  clearInterval(looking);
  if (signal !== null) console.error(`nodelet: ended by ${signal}`);
  return code ?? 1;
}
