import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { ifThere, table } from "../../../ground/base/index.ts";
import { acceptsGzip } from "./accepts-gzip.ts";
import { keptForGood, neverKept, safetyHeaders } from "./headers.ts";

const types = table({
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
});

const unpack = promisify(gunzip);

/** The files of the pages, as the build has made and packed them. Nothing of them is kept in memory. */
export class Assets {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Answers with the file; false when there is none of this name. */
  async send(name: string, accepted: string | undefined, response: ServerResponse): Promise<boolean> {
    // No name but such as the build makes: nothing that could leave the directory.
    const [, ending] = /^[\w-]{1,64}(?:\.[\w-]{1,64})?\.([a-z]{2,4})$/.exec(name) ?? [];
    const type = types[ending ?? ""];
    if (type === undefined) return false;
    const packed = await ifThere(readFile(join(this.#directory, `${name}.gz`)));
    if (packed === undefined) return false;
    const isPacked = acceptsGzip(accepted);
    const body = isPacked ? packed : await unpack(packed, { maxOutputLength: mostUnpackedBytes });
    response.writeHead(200, {
      ...safetyHeaders,
      "Content-Type": type,
      "Cache-Control": name === pageName ? neverKept : keptForGood,
      ...(isPacked && { "Content-Encoding": "gzip" }),
      Vary: "Accept-Encoding",
      "Content-Length": body.length,
    });
    response.end(body);
    return true;
  }
}

export const pageName = "index.html";
const mostUnpackedBytes = 4 * 1024 * 1024;
