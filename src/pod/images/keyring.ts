import type { DockerConfig, Login } from "./docker-config.ts";
import {
  isDockerHubImage,
  matchesRegistry,
  parseRegistryPattern,
  type RegistryPattern,
  registryKey,
} from "./registry-pattern.ts";

/** Where a login came from; decides who may use the image it pulled (pull records). */
export type LoginSource =
  | { readonly type: "node" }
  | { readonly type: "secret"; readonly uid: string; readonly namespace: string; readonly name: string }
  | { readonly type: "serviceAccount"; readonly uid: string; readonly namespace: string; readonly name: string };

export interface Credential extends Login {
  readonly source: LoginSource;
}

const dockerHubKey = "index.docker.io";

/** Credentials by registry, found by the repository of an image. */
export class Keyring {
  readonly #entries = new Map<string, { readonly pattern: RegistryPattern; readonly credentials: Credential[] }>();

  /** Adds every entry of a config; entries whose location cannot be read are left out. */
  add(config: DockerConfig, source: LoginSource): void {
    for (const [location, login] of config) {
      const key = registryKey(location);
      const pattern = key === undefined ? undefined : parseRegistryPattern(key);
      if (key === undefined || pattern === undefined) continue;
      const entry = this.#entries.get(key) ?? { pattern, credentials: [] };
      entry.credentials.push({ ...login, source });
      this.#entries.set(key, entry);
    }
  }

  /** Every fitting credential, the most specific location first. */
  lookup(repository: string): readonly Credential[] {
    const image = parseRegistryPattern(repository);
    if (image === undefined) return [];
    const found = [...this.#entries]
      .filter(([, { pattern }]) => matchesRegistry(pattern, image))
      .sort(([a], [b]) => (a < b ? 1 : -1))
      .flatMap(([, { credentials }]) => credentials);
    if (found.length > 0 || !isDockerHubImage(repository)) return found;
    return this.#entries.get(dockerHubKey)?.credentials ?? [];
  }
}
