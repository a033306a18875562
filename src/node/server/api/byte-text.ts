import { isUtf8 } from "node:buffer";

// Names of files are bytes, which need not be text; paths are text all the way to their handler. A byte that is no
// text stands as a lone surrogate, which text never has, so that each name is written in one way and can be got back.
const escapeBase = 0xdc00;

/** Bytes as text from which `bytesOfText` makes the same bytes. */
export function textOfBytes(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] ?? 0;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const character = bytes.subarray(at, at + length);
    if (isUtf8(character)) {
      text += character.toString("utf8");
      at += length;
    } else {
      text += String.fromCharCode(escapeBase + lead);
      at += 1;
    }
  }
  return text;
}

export function bytesOfText(text: string): Buffer {
  const parts = text.split(/((?<![\ud800-\udbff])[\udc80-\udcff])/);
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.from([part.charCodeAt(0) - escapeBase]))),
  );
}

/** As one element of a URL's path. */
export function percentEncoded(text: string): string {
  if (!/[\ud800-\udfff]/.test(text)) return encodeURIComponent(text);
  return Array.from(bytesOfText(text), (byte) =>
    /[A-Za-z0-9\-_.~]/.test(String.fromCharCode(byte))
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join("");
}

/** The text of one element of a URL's path; undefined: an escape is broken. */
export function percentDecoded(element: string): string | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(element)) return undefined;
  try {
    return decodeURIComponent(element);
  } catch {
    const bytes = element.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    return textOfBytes(Buffer.from(bytes, "latin1"));
  }
}
