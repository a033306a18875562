import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { aFewAtOnce, mapAtMost, messageOf } from "../../ground/base/index.ts";
import { decodeProviders } from "./plugin-config-decode.ts";
import type { RegistryPattern } from "./registry-pattern.ts";

/** One entry of a CredentialProviderConfig: a program that hands out registry logins. */
export interface CredentialProviderSettings {
  readonly name: string;
  readonly matchImages: readonly RegistryPattern[];
  readonly defaultCacheMs: number;
  /** Version of the request and response, not of the config file. */
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  /** Set when the program wants a service account token of the pod. */
  readonly token: TokenSettings | undefined;
}

export interface TokenSettings {
  readonly audience: string;
  /** Whether what the program answers is good for all pods of the account, or for this token alone. */
  readonly cacheBy: "ServiceAccount" | "Token";
  readonly requireServiceAccount: boolean;
  readonly requiredAnnotations: readonly string[];
  readonly optionalAnnotations: readonly string[];
}

export interface CredentialProviderConfig {
  readonly providers: readonly CredentialProviderSettings[];
  /** SHA-256 over the files read, for kubelet_credential_provider_config_info. */
  readonly hash: string;
}

/** The credential provider configuration cannot be used; the agent must not start. Lists every problem found. */
export class CredentialProviderConfigError extends Error {
  override readonly name = "CredentialProviderConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`failed to register credential provider plugins: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

/** Reads and checks the configuration (a file, or a directory of them) and that every program is there. */
export async function loadCredentialProviders(options: {
  readonly configPath: string;
  readonly binDir: string;
  /** Gate KubeletServiceAccountTokenForCredentialProviders. */
  readonly allowTokens: boolean;
}): Promise<CredentialProviderConfig> {
  const { configPath, binDir, allowTokens } = options;
  const files = await configFiles(configPath);
  const problems: string[] = [];
  const providers: CredentialProviderSettings[] = [];
  const hash = createHash("sha256");
  const definedIn = new Map<string, string>();
  for (const file of files) {
    const text = await readConfig(file);
    hash.update(text);
    const decoded = await decodeProviders(text, { allowTokens });
    problems.push(...decoded.problems.map((problem) => `${file}: ${problem}`));
    for (const provider of decoded.providers) {
      const other = definedIn.get(provider.name);
      if (other !== undefined) {
        problems.push(`${file}: provider ${JSON.stringify(provider.name)} is already defined in ${other}`);
      }
      definedIn.set(provider.name, file);
      providers.push(provider);
    }
  }
  problems.push(...(await missingPrograms(binDir, [...definedIn.keys()])));
  if (problems.length > 0) throw new CredentialProviderConfigError(problems);
  return { providers, hash: `sha256:${hash.digest("hex")}` };
}

async function configFiles(path: string): Promise<readonly string[]> {
  let entries: readonly string[];
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const found = await readdir(path, { withFileTypes: true });
    entries = found.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    throw new CredentialProviderConfigError([`cannot read ${path}: ${messageOf(error)}`]);
  }
  const files = entries.filter((name) => [".json", ".yaml", ".yml"].includes(extname(name))).sort();
  if (files.length === 0) {
    throw new CredentialProviderConfigError([`no .json, .yaml or .yml files found in directory ${path}`]);
  }
  return files.map((name) => join(path, name));
}

async function readConfig(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CredentialProviderConfigError([`cannot read ${file}: ${messageOf(error)}`]);
  }
}

async function missingPrograms(binDir: string, names: readonly string[]): Promise<readonly string[]> {
  try {
    if (!(await stat(binDir)).isDirectory()) return [`plugin binary directory ${binDir} is not a directory`];
  } catch {
    return [`plugin binary directory ${binDir} did not exist`];
  }
  const problems = await mapAtMost(aFewAtOnce, names, async (name) => {
    const program = join(binDir, name);
    try {
      if (!(await stat(program)).isFile()) return [`plugin binary ${program} is not a file`];
      await access(program, constants.X_OK);
      return [];
    } catch {
      return [`plugin binary executable ${program} did not exist or is not executable`];
    }
  });
  return problems.flat();
}
