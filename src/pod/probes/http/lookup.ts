import { type LookupAddress, type LookupOptions, Resolver } from "node:dns";
import type { LookupFunction } from "node:net";
import { codeOf, mapAtMost, onAbort } from "../../../ground/base/index.ts";
import { type NameFilePaths, NameFiles, type ResolverSettings } from "./name-files.ts";

/** Longer names exist nowhere. */
const longestName = 253;
/** A name may have thousands of addresses; more than these are not tried within a probe's time anyway. */
const mostAddresses = 16;
/** Answers of name servers that say: there is no such name. All others say that they could not tell. */
const negative = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);

/**
 * Finds the addresses of host names as Go does: in the machine's hosts file, then by asking its name servers, through
 * the search list. Not by getaddrinfo, which holds one of libuv's few threads until the name servers give up, cannot be
 * given up itself, and so would make every pod wait for the names of one.
 */
export class HostNames {
  readonly #files: NameFiles;
  readonly #servers: readonly string[] | undefined;

  /** Without `servers`, those of the machine are asked. */
  constructor(paths?: NameFilePaths, servers?: readonly string[]) {
    this.#files = new NameFiles(paths);
    this.#servers = servers;
  }

  /** For one connection: what is under way ends with the signal. */
  lookupUntil(signal: AbortSignal): LookupFunction {
    return (hostname: string, options: LookupOptions, callback) => {
      const family = options.family === 4 || options.family === "IPv4" ? 4 : options.family === 6 ? 6 : 0;
      this.resolve(hostname, family, signal).then(
        (found) => {
          const [first] = found;
          if (options.all || first === undefined) callback(null, [...found]);
          else callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
    };
  }

  /** At least one address, or an error with the code ENOTFOUND or EAI_AGAIN. */
  async resolve(hostname: string, family: 0 | 4 | 6, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    signal.throwIfAborted();
    if (hostname.length > longestName + 1) throw lookupError("ENOTFOUND", hostname);
    const { hosts, settings } = await this.#files.read();
    const families = family === 0 ? ([4, 6] as const) : [family];
    const written = ofFamilies(hosts.get(hostname.toLowerCase().replace(/\.$/, "")) ?? [], families);
    if (written.length > 0) return written;
    let code: "ENOTFOUND" | "EAI_AGAIN" = "ENOTFOUND";
    for (const name of settings.candidates(hostname)) {
      signal.throwIfAborted();
      const answer = await this.#ask(name, families, settings, signal);
      if (answer.length > 0) return answer.slice(0, mostAddresses);
      if (answer === couldNotTell) code = "EAI_AGAIN";
    }
    throw lookupError(code, hostname);
  }

  async #ask(
    name: string,
    families: readonly (4 | 6)[],
    { timeoutMs, attempts }: ResolverSettings,
    signal: AbortSignal,
  ): Promise<readonly LookupAddress[]> {
    // One for each question: it reads the machine's servers as they are now, and can be given up alone.
    const resolver = new Resolver({ timeout: timeoutMs, tries: attempts });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    using _ = onAbort(signal, () => resolver.cancel());
    const answers = await mapAtMost(families.length, families, (family) => query(resolver, name, family));
    const found = answers.flat();
    return found.length === 0 && answers.includes(couldNotTell) ? couldNotTell : found;
  }
}

/** Told from an empty answer by identity. */
const couldNotTell: readonly LookupAddress[] = [];

function query(resolver: Resolver, name: string, family: 4 | 6): Promise<readonly LookupAddress[]> {
  return new Promise((resolve) => {
    const done = (error: Error | null, addresses: string[]): void => {
      if (error === null) resolve(addresses.map((address) => ({ address, family })));
      else resolve(negative.has(codeOf(error) ?? "") ? [] : couldNotTell);
    };
    if (family === 4) resolver.resolve4(name, done);
    else resolver.resolve6(name, done);
  });
}

function ofFamilies(found: readonly LookupAddress[], families: readonly (4 | 6)[]): readonly LookupAddress[] {
  return found.filter(({ family }) => families.some((wanted) => wanted === family)).slice(0, mostAddresses);
}

function lookupError(code: "ENOTFOUND" | "EAI_AGAIN", hostname: string): Error {
  return Object.assign(new Error(`cannot find an address of ${hostname.slice(0, longestName)}: ${code}`), { code });
}

/** The machine's own. */
export const hostNames = new HostNames();
