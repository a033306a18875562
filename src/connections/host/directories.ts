import { mkdir } from "node:fs/promises";

/** Makes the directory and those above it unless they exist; the mode of existing ones is left alone. */
export async function ensureDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode });
  } catch (error) {
    throw new Error(`Cannot create directory "${path}"`, { cause: error });
  }
}
