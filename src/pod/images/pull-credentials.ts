import { createHash } from "node:crypto";
import { setImmediate as immediate } from "node:timers/promises";
import { goJson } from "../../ground/base/index.ts";
import type { Secret } from "../../ground/model/index.ts";
import type { CredentialPlugin, PullingPod } from "./credential-plugin.ts";
import {
  type DockerConfig,
  DockerConfigError,
  type Login,
  parseDockerCfg,
  parseDockerConfigJson,
} from "./docker-config.ts";
import { type Credential, Keyring } from "./keyring.ts";
import type { NodeCredentials } from "./node-credentials.ts";

/** A pull secret of the pod cannot be decoded; the message names the secret and holds nothing of it. */
export class PullSecretError extends Error {
  override readonly name = "PullSecretError";
}

/** All registry logins the node knows: the pod's secrets, the node's files, then the plugins. */
export class PullCredentials {
  readonly #node: NodeCredentials;
  readonly #plugins: readonly CredentialPlugin[];

  constructor(node: NodeCredentials, plugins: readonly CredentialPlugin[]) {
    this.#node = node;
    this.#plugins = plugins;
  }

  /** The logins that fit the repository, in the order to try them; each user and password once, and not more than a few. */
  async find(
    repository: string,
    pod: PullingPod,
    secrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<readonly Credential[]> {
    const fromSecrets = await keyringOfSecrets(secrets);
    const fromNode = new Keyring();
    const fromPlugins = new Keyring();
    const [nodeConfig, ...provided] = await Promise.all([
      this.#node.read(),
      ...this.#plugins.map((plugin) => plugin.provide(repository, pod, signal)),
    ]);
    fromNode.add(nodeConfig, { type: "node" });
    for (const { logins, source } of provided) fromPlugins.add(logins, source);
    const all = [fromSecrets, fromNode, fromPlugins].flatMap((keyring) => keyring.lookup(repository));
    const found = new Map<string, Credential>();
    for (const credential of all) {
      const hash = credentialHash(credential);
      if (!found.has(hash)) found.set(hash, credential);
      if (found.size === mostTried) break;
    }
    return [...found.values()];
  }
}

/**
 * Each that a registry refuses costs a try of the runtime, while other pods wait for the turn: most nodes pull one image
 * at a time. The most specific ones come first.
 */
const mostTried = 32;

/** Tells logins apart without keeping them; the same value the kubelet writes into its pull records. */
export function credentialHash({ username, password }: Login): string {
  const json = goJson({ ...(username === "" ? {} : { username }), ...(password === "" ? {} : { password }) });
  return createHash("sha256").update(json).digest("hex");
}

async function keyringOfSecrets(secrets: readonly Secret[]): Promise<Keyring> {
  const keyring = new Keyring();
  let unbroken = 0;
  for (const secret of secrets) {
    // Each may have a megabyte, and a pod may name any number of them.
    unbroken += sizeOf(secret);
    if (unbroken > longestUnbroken) {
      await immediate();
      unbroken = 0;
    }
    const { uid = "", namespace = "", name = "" } = secret.metadata ?? {};
    try {
      keyring.add(decodeSecret(secret), { type: "secret", uid, namespace, name });
    } catch (error) {
      if (!(error instanceof DockerConfigError)) throw error;
      throw new PullSecretError(`image pull secret "${namespace}/${name}" cannot be used: ${error.message}`);
    }
  }
  return keyring;
}

/** Read without a break: some milliseconds. */
const longestUnbroken = 256 * 1024;

function sizeOf({ data = {} }: Secret): number {
  return (data[".dockerconfigjson"]?.length ?? 0) + (data[".dockercfg"]?.length ?? 0);
}

function decodeSecret(secret: Secret): DockerConfig {
  switch (secret.type) {
    case "kubernetes.io/dockerconfigjson":
      return decodeData(secret, ".dockerconfigjson", parseDockerConfigJson);
    case "kubernetes.io/dockercfg":
      return decodeData(secret, ".dockercfg", parseDockerCfg);
    default:
      return [];
  }
}

function decodeData(secret: Secret, key: string, parse: (text: string) => DockerConfig): DockerConfig {
  const data = secret.data?.[key] ?? "";
  return data === "" ? [] : parse(Buffer.from(data, "base64").toString("utf8"));
}
