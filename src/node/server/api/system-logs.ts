import { type FileHandle, opendir } from "node:fs/promises";
import { setImmediate as immediate } from "node:timers/promises";
import { untilClientLeaves } from "../http.ts";
import { AnswerError } from "./answer-error.ts";
import { bytesOfText, percentEncoded, textOfBytes } from "./byte-text.ts";
import { copyRange, pass } from "./copy-range.ts";
import { findBelow } from "./find-below.ts";
import type { ApiCall, ApiHandler, ApiMount } from "./router.ts";

/** Answers a query for the logs of services; undefined: the request is none. */
export type LogQuery = (call: ApiCall) => Promise<void> | undefined;

/** /logs/: the files below one directory, listed and read; nothing outside it, whatever links lead there. */
export function systemLogsService(root: string, query: LogQuery | undefined): ApiMount {
  const handle: ApiHandler = (call) => query?.(call) ?? serveFile(call, root);
  return {
    type: "service",
    path: "/logs/",
    routes: [
      { methods: ["GET"], pattern: "", handle },
      { methods: ["GET"], pattern: "{path*}", handle },
    ],
  };
}

async function serveFile(call: ApiCall, root: string): Promise<void> {
  const path = call.params["path"] ?? "";
  if (/(^|\/)index\.html$/.test(path)) return redirect(call, "./");
  const found = await findBelow(root, path);
  const name = path.replace(/\/$/, "").split("/").at(-1) ?? "";
  if (found.type === "directory") {
    await using directory = found;
    if (path !== "" && !path.endsWith("/")) return redirect(call, `${percentEncoded(name)}/`);
    return await sendListing(call, directory.path);
  }
  await using file = found;
  if (path.endsWith("/")) return redirect(call, `../${percentEncoded(name)}`);
  const stats = await file.handle.stat();
  await sendFile(call, file.handle, { name, size: stats.size, modified: stats.mtime });
}

function redirect({ response }: ApiCall, location: string): void {
  response.writeHead(301, { Location: location, "Content-Length": 0 });
  response.end();
}

/** More names than this nobody reads; a directory may hold millions. */
const mostNames = 50_000;
/** Written at a time, at the speed of the reader: some milliseconds of work and at most 1 MB of text. */
const namesAtOnce = 1_000;

async function sendListing({ response }: ApiCall, directory: string): Promise<void> {
  const names: string[] = [];
  // The type says text, whatever the encoding.
  const entries = await opendir(directory, { encoding: "buffer" as BufferEncoding, bufferSize: 256 });
  for await (const entry of entries) {
    const name = textOfBytes(entry.name as unknown as Buffer);
    names.push(entry.isDirectory() ? `${name}/` : name);
    if (names.length === mostNames) break;
  }
  names.sort();
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  const signal = untilClientLeaves(response);
  try {
    await pass(
      Buffer.from('<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n'),
      response,
      signal,
    );
    for (let at = 0; at < names.length; at += namesAtOnce) {
      const lines = names.slice(at, at + namesAtOnce).map(lineFor);
      await pass(Buffer.from(lines.join("")), response, signal);
      // A reader who is as fast as we are must not keep everybody else waiting.
      await immediate();
    }
    const end = names.length === mostNames ? `and perhaps more: only ${mostNames} are listed\n</pre>\n` : "</pre>\n";
    response.end(end);
  } catch {
    // A client that leaves in the middle only ends its own list.
    response.destroy();
  }
}

function lineFor(name: string): string {
  return `<a href="${linkTo(name)}">${escaped(bytesOfText(name).toString())}</a>\n`;
}

/** As Go writes it; a name with a colon would otherwise be taken for the scheme of another place. */
function linkTo(name: string): string {
  const element = percentEncoded(name.replace(/\/$/, "")).replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent);
  return `${element.includes(":") ? "./" : ""}${element}${name.endsWith("/") ? "/" : ""}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&#34;");
}

interface FileFacts {
  readonly name: string;
  readonly size: number;
  readonly modified: Date;
}

async function sendFile({ request, response }: ApiCall, handle: FileHandle, facts: FileFacts): Promise<void> {
  const { size, modified } = facts;
  const since = Date.parse(request.headers["if-modified-since"] ?? "");
  if (Math.floor(modified.getTime() / 1000) * 1000 <= since) {
    response.writeHead(304);
    response.end();
    return;
  }
  const headers = {
    "Content-Type": facts.name.endsWith(".gz") ? "application/gzip" : "text/plain; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Accept-Ranges": "bytes",
    "Last-Modified": modified.toUTCString(),
  };
  const range = parseRange(request.headers.range, size);
  if (range === "unsatisfiable") {
    throw new AnswerError(416, "invalid range: failed to overlap\n", { "Content-Range": `bytes */${size}` });
  }
  const { start, end } = range ?? { start: 0, end: size };
  const part = range === undefined ? {} : { "Content-Range": `bytes ${start}-${end - 1}/${size}` };
  response.writeHead(range === undefined ? 200 : 206, { ...headers, ...part, "Content-Length": end - start });
  if (end === start) {
    response.end();
    return;
  }
  try {
    const sent = await copyRange(handle, { start, end }, response, untilClientLeaves(response));
    // A file that was cut short meanwhile: what was promised will not come, and nothing else may be taken for it.
    if (sent < end - start) response.destroy();
    else response.end();
  } catch {
    // A client that leaves in the middle only ends its own download.
    response.destroy();
  }
}

/** One range of bytes, `end` not included; undefined: all of it, as for anything that is not understood. */
export function parseRange(
  header: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | "unsatisfiable" | undefined {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (first === undefined || last === undefined || (first === "" && last === "")) return undefined;
  if (first === "") return last === "0" ? "unsatisfiable" : { start: Math.max(0, size - Number(last)), end: size };
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  if (start >= size) return "unsatisfiable";
  return { start, end: last === "" ? size : Math.min(Number(last) + 1, size) };
}
