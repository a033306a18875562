import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, isMissing, type Logger, messageOf } from "../../ground/base/index.ts";
import { type DockerConfig, parseDockerCfg, parseDockerConfigJson } from "./docker-config.ts";

/** Where the node's own Docker credentials may lie; `homeDir` is undefined when the process has no HOME. */
export interface NodeCredentialPaths {
  readonly rootDir: string;
  readonly workDir: string;
  readonly homeDir: string | undefined;
}

const cacheMs = 5 * 60_000;

/** The Docker config file of the node: the first one that can be read, looked for again every five minutes. */
export class NodeCredentials {
  readonly #paths: NodeCredentialPaths;
  readonly #clock: Clock;
  readonly #log: Logger;
  #cached: { readonly config: Promise<DockerConfig>; readonly readAt: number } | undefined;

  constructor(paths: NodeCredentialPaths, ports: { readonly clock: Clock; readonly log: Logger }) {
    this.#paths = paths;
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  read(): Promise<DockerConfig> {
    const now = this.#clock.monotonic();
    if (this.#cached === undefined || now - this.#cached.readAt >= cacheMs) {
      this.#cached = { config: this.#search(), readAt: now };
    }
    return this.#cached.config;
  }

  async #search(): Promise<DockerConfig> {
    const { rootDir, workDir, homeDir } = this.#paths;
    const homes = homeDir === undefined ? [] : [homeDir];
    const candidates = [
      ...[rootDir, workDir, ...homes.map((home) => join(home, ".docker")), "/.docker"].map((directory) => ({
        file: join(directory, "config.json"),
        parse: parseDockerConfigJson,
      })),
      ...[rootDir, workDir, ...homes, "/"].map((directory) => ({
        file: join(directory, ".dockercfg"),
        parse: parseDockerCfg,
      })),
    ];
    for (const { file, parse } of candidates) {
      try {
        return parse(await readFile(file, "utf8"));
      } catch (error) {
        if (isMissing(error)) continue;
        this.#log.warn("Docker credentials file ignored", { file, reason: messageOf(error) });
      }
    }
    return [];
  }
}
