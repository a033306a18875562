import { constants } from "node:fs";
import { type FileHandle, open, readdir, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ApiError } from "./api-error.ts";
import type { ApiCall, ApiHandler, Mount } from "./router.ts";

/** Answers a query for the logs of services; undefined: the request is none. */
export type LogQuery = (call: ApiCall) => Promise<void> | undefined;

/** /logs/: the files below one directory, listed and read; nothing outside it, whatever links lead there. */
export function systemLogsService(root: string, query: LogQuery | undefined): Mount {
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
  await using file = await openBelow(root, path);
  const stats = await file.handle.stat();
  const name = path.replace(/\/$/, "").split("/").at(-1) ?? "";
  if (stats.isDirectory()) {
    if (path !== "" && !path.endsWith("/")) return redirect(call, `${encodeURIComponent(name)}/`);
    return sendListing(call, file.realPath);
  }
  if (path.endsWith("/")) return redirect(call, `../${encodeURIComponent(name)}`);
  if (!stats.isFile()) throw notFound();
  await sendFile(call, file.handle, { name, size: stats.size, modified: stats.mtime });
}

interface OpenedFile extends AsyncDisposable {
  readonly handle: FileHandle;
  readonly realPath: string;
}

const notFound = (): ApiError => new ApiError(404, "404 page not found\n");

/** Opens first and looks afterwards where that led, so that no link can be swapped in between. */
export async function openBelow(root: string, path: string): Promise<OpenedFile> {
  let handle: FileHandle;
  try {
    // A pipe must not make us wait for somebody who writes to it.
    handle = await open(join(root, path), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw code === "EACCES" || code === "EPERM" ? new ApiError(403, "403 Forbidden\n") : notFound();
  }
  try {
    const realRoot = await realpath(root);
    const realPath = await readlink(`/proc/self/fd/${handle.fd}`);
    if (realPath !== realRoot && !realPath.startsWith(`${realRoot}/`)) throw notFound();
    return { handle, realPath, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function redirect({ response }: ApiCall, location: string): void {
  response.writeHead(301, { Location: location, "Content-Length": 0 });
  response.end();
}

async function sendListing({ response }: ApiCall, directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  const lines = names.map((name) => `<a href="${encodeURI(name).replaceAll("#", "%23")}">${escaped(name)}</a>\n`);
  const body = `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${lines.join("")}</pre>\n`;
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
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
    throw new ApiError(416, "invalid range: failed to overlap\n", { "Content-Range": `bytes */${size}` });
  }
  const { start, end } = range ?? { start: 0, end: size };
  const part = range === undefined ? {} : { "Content-Range": `bytes ${start}-${end - 1}/${size}` };
  response.writeHead(range === undefined ? 200 : 206, { ...headers, ...part, "Content-Length": end - start });
  if (end === start) {
    response.end();
    return;
  }
  const content = handle.createReadStream({ start, end: end - 1, autoClose: false });
  // A client that leaves in the middle only ends its own download.
  await pipeline(content, response).catch(() => response.destroy());
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
