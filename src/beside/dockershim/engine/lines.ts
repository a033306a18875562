import { EngineUnavailable } from "./errors.ts";

/** The lines of a stream as they come, without their ends; a line beyond the limit fails it. */
export async function* linesOf(stream: AsyncIterable<Uint8Array>, longest: number): AsyncGenerator<string, void> {
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const line = Buffer.concat([...parts, bytes.subarray(from, end)]).toString("utf8");
      parts = [];
      held = 0;
      from = end + 1;
      if (line.trim() !== "") yield line;
    }
    const rest = bytes.subarray(from);
    if (rest.length === 0) continue;
    held += rest.length;
    if (held > longest) throw new EngineUnavailable(`docker sent a line of more than ${longest} bytes`);
    parts.push(rest);
  }
  const last = Buffer.concat(parts).toString("utf8");
  if (last.trim() !== "") yield last;
}
