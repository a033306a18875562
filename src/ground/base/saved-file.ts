import { chmod, mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** What is to be in a file; in pieces where it is long: each is made when the one before is written. */
export type FileText = string | Iterable<string>;

/** Writes a file that only we may read: whole or not at all, and still there after a loss of power. */
export async function savePrivateFile(path: string, text: FileText): Promise<void> {
  await makeLastingDirectory(dirname(path), 0o700);
  await saveFile(path, text, 0o600);
}

/**
 * Replaces a file, or makes it: whoever reads it finds the old text or the new one, whole, even when the power fails
 * at any moment, and the new one once this has resolved. The directory must be there. One writer at a time.
 */
export async function saveFile(path: string, text: FileText, mode: number): Promise<void> {
  await replaceFile(path, text, mode);
  await syncDirectory(dirname(path));
}

/** The same for what need only outlive this process: a loss of power may bring back the old text, whole, for a while. */
export async function replaceFile(path: string, text: FileText, mode: number): Promise<void> {
  const unfinished = `${path}.tmp`;
  {
    await using file = await open(unfinished, "w", mode);
    // Goes on where the piece before has ended.
    for (const piece of typeof text === "string" ? [text] : text) await file.writeFile(piece);
    // What an earlier run left unfinished keeps its own mode.
    await chmod(unfinished, mode);
    // Without this, the new name may reach the disk before the text does, and lead to an empty file.
    await file.sync();
  }
  await rename(unfinished, path);
}

/** Makes a directory and those above it; they outlive a loss of power, and so may what is saved in them. */
async function makeLastingDirectory(path: string, mode: number): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncDirectory(dirname(made));
}

/** Names live in the directory: a file that was made, renamed or removed is so for good only once this is done. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}
