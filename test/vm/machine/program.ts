import { spawn } from "node:child_process";

/** Runs a program to its end and returns what it wrote; an error has the end of that. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly input?: string | Buffer } = {},
): Promise<string> {
  return await new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      // The administrator's programs are not on everybody's path.
      env: { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin`, DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let stdout = "";
    let all = "";
    child.stdout.on("data", (chunk) => {
      stdout += String(chunk);
      all += String(chunk);
    });
    child.stderr.on("data", (chunk) => {
      all += String(chunk);
    });
    child.once("error", (error) => reject(new Error(`cannot run ${program}: ${error.message}`, { cause: error })));
    child.once("close", (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`${program} ${args.join(" ")} ended with ${code ?? signal}:\n${all.slice(-2000)}`));
    });
    // A program that ends without reading says what was wrong by its status.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
  });
}
