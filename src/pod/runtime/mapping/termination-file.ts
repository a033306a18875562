import { randomBytes } from "node:crypto";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const ownerAndGroup = 0o750;
/** The container's user, whoever it is, writes its last words here. */
const anyoneWrites = 0o666;

/** A new empty file for a container's termination message, different for each instance of the container. */
export async function createTerminationFile(directory: string): Promise<string> {
  await mkdir(directory, { recursive: true, mode: ownerAndGroup });
  const path = join(directory, randomBytes(4).toString("hex"));
  await writeFile(path, "", { flag: "wx" });
  // Not at creation, where the agent's umask would narrow it.
  await chmod(path, anyoneWrites);
  return path;
}
