import { once } from "node:events";
import type { FileHandle } from "node:fs/promises";
import type { Writable } from "node:stream";

const pieceBytes = 64 * 1024;

/**
 * Copies bytes of a file, `end` not included, at the speed of their reader, and resolves with how many there were: fewer
 * when the file was cut short meanwhile. Rejects with the signal's reason.
 *
 * Not by a stream of the file: with a signal that has fired already it fails where nobody listens, and without one it
 * keeps the file open for longer than its reader stays.
 */
export async function copyRange(
  file: FileHandle,
  { start, end }: { readonly start: number; readonly end: number },
  to: Writable,
  signal: AbortSignal,
): Promise<number> {
  let at = start;
  while (at < end) {
    signal.throwIfAborted();
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, end - at));
    const { bytesRead } = await file.read(piece, 0, piece.length, at);
    if (bytesRead === 0) break;
    at += bytesRead;
    await pass(piece.subarray(0, bytesRead), to, signal);
  }
  return at - start;
}

/** Resolves when more can be taken. */
export async function pass(piece: Buffer, to: Writable, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!to.write(piece)) await once(to, "drain", { signal });
}
