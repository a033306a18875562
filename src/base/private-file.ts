import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a file that only we may read: whole or not at all, and on the disk before its old version is gone. */
export async function savePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(temporary, text, { mode: 0o600, flush: true });
  // A temporary file left by an earlier run keeps its own mode.
  await chmod(temporary, 0o600);
  await rename(temporary, path);
}
