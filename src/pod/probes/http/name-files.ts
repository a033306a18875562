import type { LookupAddress } from "node:dns";
import { open } from "node:fs/promises";
import { isIP } from "node:net";

export interface NameFilePaths {
  readonly hosts: string;
  readonly resolvConf: string;
}

/** More of a file than this is not read; lists of blocked names are the longest that people keep. */
const longestFile = 1024 * 1024;

const loopback: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** The machine's hosts file and resolver settings, read again when they have changed. */
export class NameFiles {
  readonly #hosts: ParsedFile<ReadonlyMap<string, readonly LookupAddress[]>>;
  readonly #settings: ParsedFile<ResolverSettings>;

  constructor({ hosts, resolvConf }: NameFilePaths = { hosts: "/etc/hosts", resolvConf: "/etc/resolv.conf" }) {
    this.#hosts = new ParsedFile(hosts, parseHosts);
    this.#settings = new ParsedFile(resolvConf, (text) => new ResolverSettings(text));
  }

  async read(): Promise<{
    readonly hosts: ReadonlyMap<string, readonly LookupAddress[]>;
    readonly settings: ResolverSettings;
  }> {
    const [hosts, settings] = await Promise.all([this.#hosts.read(), this.#settings.read()]);
    return { hosts, settings };
  }
}

/** What resolv.conf says on how to ask; whom to ask, the resolver reads there itself. */
export class ResolverSettings {
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly #search: readonly string[];
  readonly #ndots: number;

  constructor(text: string) {
    let search: readonly string[] = [];
    let [ndots, timeoutSeconds, attempts] = [1, 5, 2];
    for (const line of text.split("\n")) {
      const [keyword = "", ...words] = line.trim().split(/\s+/);
      if (keyword === "search") search = words;
      else if (keyword === "domain") search = words.slice(0, 1);
      else if (keyword === "options") {
        for (const word of words) {
          const [option, value] = word.split(":");
          const number = Number(value);
          if (!Number.isInteger(number) || number < 0) continue;
          // The bounds are those of resolv.conf(5).
          if (option === "ndots") ndots = Math.min(number, 15);
          else if (option === "timeout") timeoutSeconds = Math.min(Math.max(number, 1), 30);
          else if (option === "attempts") attempts = Math.min(Math.max(number, 1), 5);
        }
      }
    }
    this.timeoutMs = timeoutSeconds * 1_000;
    this.attempts = attempts;
    this.#search = search.map((domain) => domain.replace(/^\.+|\.+$/g, "")).filter((domain) => domain !== "");
    this.#ndots = ndots;
  }

  /** The full names to ask for, in order. */
  candidates(name: string): readonly string[] {
    if (name.endsWith(".")) return [name.slice(0, -1)];
    const extended = this.#search.map((domain) => `${name}.${domain}`);
    const dots = name.split(".").length - 1;
    return dots >= this.#ndots ? [name, ...extended] : [...extended, name];
  }
}

/** Names in lower case. `localhost` is the machine itself, whether its file says so or not (RFC 6761). */
function parseHosts(text: string): ReadonlyMap<string, readonly LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      const known = hosts.get(key);
      if (known === undefined) hosts.set(key, [{ address, family }]);
      else known.push({ address, family });
    }
  }
  if (!hosts.has("localhost")) hosts.set("localhost", [...loopback]);
  return hosts;
}

/** A file that is missing counts as empty. */
class ParsedFile<Parsed> {
  readonly #path: string;
  readonly #parse: (text: string) => Parsed;
  #known: { readonly version: string; readonly parsed: Parsed } | undefined;

  constructor(path: string, parse: (text: string) => Parsed) {
    this.#path = path;
    this.#parse = parse;
  }

  async read(): Promise<Parsed> {
    let file: Awaited<ReturnType<typeof open>>;
    try {
      file = await open(this.#path);
    } catch {
      return this.#parse("");
    }
    try {
      const { ino, size, mtimeMs } = await file.stat();
      const version = `${ino} ${size} ${mtimeMs}`;
      if (this.#known?.version !== version) {
        const buffer = Buffer.alloc(Math.min(size, longestFile));
        const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
        this.#known = { version, parsed: this.#parse(buffer.toString("utf8", 0, bytesRead)) };
      }
      return this.#known.parsed;
    } finally {
      await file.close();
    }
  }
}
