/**
 * The beginning of a text, at most `bytes` long as UTF-8, whole characters only. Always a copy: a slice of a string
 * keeps the whole string in memory, which is what cutting is to prevent.
 */
export function cutText(text: string, bytes: number): string {
  // Each UTF-16 unit is at least one byte long, so what lies beyond can't be part of the answer.
  const candidate = text.length > bytes ? text.slice(0, bytes) : text;
  if (candidate.length === text.length && Buffer.byteLength(text) <= bytes) return text;
  return decodeWhole(Buffer.from(candidate).subarray(0, bytes));
}

/** The same for bytes that are text, or claim to be. */
export function cutBytes(content: Uint8Array, bytes: number): string {
  const candidate = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return candidate.length <= bytes ? candidate.toString() : decodeWhole(candidate.subarray(0, bytes));
}

/** A character that the end cuts in two is left out instead of being shown as a replacement mark. */
function decodeWhole(bytes: Buffer): string {
  let end = bytes.length;
  // At most three bytes can belong to a character that is not complete.
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (length > back) end = bytes.length - back;
    break;
  }
  return bytes.subarray(0, end).toString();
}
