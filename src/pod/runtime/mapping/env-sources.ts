import { join } from "node:path";
import type {
  ConfigMap,
  EnvFromSource,
  EnvVarSource,
  FileKeySelector,
  IdentifiedPod,
} from "../../../ground/model/index.ts";
import type { EnvContext } from "./context.ts";
import { envFileValue } from "./env-file.ts";
import { ConfigError } from "./errors.ts";

type Value = string | Buffer;
type Kind = "ConfigMap" | "Secret";

const longestFileKey = 128;
const longestFileValueBytes = 32 * 1024;

/** Config maps and secrets as one container's environment sees them: each is read once. */
export class EnvSources {
  readonly #pod: IdentifiedPod;
  readonly #context: EnvContext;
  readonly #signal: AbortSignal;
  readonly #read = new Map<string, ReadonlyMap<string, Value>>();

  constructor(pod: IdentifiedPod, context: EnvContext, signal: AbortSignal) {
    this.#pod = pod;
    this.#context = context;
    this.#signal = signal;
  }

  /** Everything in a source; nothing when it is optional and missing. */
  async all({ configMapRef, secretRef }: EnvFromSource): Promise<ReadonlyMap<string, Value>> {
    if (configMapRef !== undefined) return (await this.#find("ConfigMap", configMapRef)) ?? new Map();
    if (secretRef !== undefined) return (await this.#find("Secret", secretRef)) ?? new Map();
    return new Map();
  }

  /** One key of a source; undefined when it is optional and missing, empty when no known source is named. */
  async one({ configMapKeyRef, secretKeyRef, fileKeyRef }: EnvVarSource): Promise<Value | undefined> {
    if (configMapKeyRef !== undefined) return await this.#key("ConfigMap", configMapKeyRef);
    if (secretKeyRef !== undefined) return await this.#key("Secret", secretKeyRef);
    if (fileKeyRef !== undefined && this.#context.gates.envFiles) return await this.#fileKey(fileKeyRef);
    return "";
  }

  async #key(
    kind: Kind,
    selector: { readonly name?: string | undefined; readonly key: string; readonly optional?: boolean | undefined },
  ): Promise<Value | undefined> {
    const data = await this.#find(kind, selector);
    const value = data?.get(selector.key);
    if (value !== undefined || data === undefined || selector.optional) return value;
    const { namespace } = this.#pod.metadata;
    throw new ConfigError(`couldn't find key ${selector.key} in ${kind} ${namespace}/${selector.name ?? ""}`);
  }

  async #find(
    kind: Kind,
    { name = "", optional }: { readonly name?: string | undefined; readonly optional?: boolean | undefined },
  ): Promise<ReadonlyMap<string, Value> | undefined> {
    const known = this.#read.get(`${kind} ${name}`);
    if (known !== undefined) return known;
    const data = kind === "ConfigMap" ? await this.#configMap(name) : await this.#secret(name);
    if (data !== undefined) this.#read.set(`${kind} ${name}`, data);
    else if (!optional) throw new ConfigError(`${kind.toLowerCase()} "${name}" not found`);
    return data;
  }

  async #configMap(name: string): Promise<ReadonlyMap<string, Value> | undefined> {
    const { namespace } = this.#pod.metadata;
    const read = this.#context.readConfigMap;
    if (read === undefined) throw new ConfigError(`couldn't get configMap ${namespace}/${name}, no kubeClient defined`);
    const configMap: ConfigMap | undefined = await read(namespace, name, this.#signal);
    return configMap && new Map(Object.entries(configMap.data ?? {}));
  }

  async #secret(name: string): Promise<ReadonlyMap<string, Value> | undefined> {
    const { namespace } = this.#pod.metadata;
    const read = this.#context.readSecret;
    if (read === undefined) throw new ConfigError(`couldn't get secret ${namespace}/${name}, no kubeClient defined`);
    const secret = await read(namespace, name, this.#signal);
    return (
      secret &&
      new Map(Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64")] as const))
    );
  }

  async #fileKey({ key, path, volumeName, optional }: FileKeySelector): Promise<Value | undefined> {
    const volume = this.#context.volumes.get(volumeName);
    if (volume?.type !== "filesystem") {
      throw new ConfigError(`cannot find the volume "${volumeName}" referenced by FileKeyRef`);
    }
    if (Buffer.byteLength(key) > longestFileKey) {
      throw new ConfigError(`environment variable key "${key}" exceeds maximum length of ${longestFileKey} characters`);
    }
    let value: string | undefined;
    try {
      value = envFileValue(await this.#context.readVolumeFile(volume.hostPath, path), key);
    } catch (cause) {
      // The cause may quote the node's files, which are not the pod's to read.
      throw new ConfigError("couldn't parse env file", { cause });
    }
    if (Buffer.byteLength(value ?? "") > longestFileValueBytes) {
      throw new ConfigError(`environment variable value for key "${key}" exceeds maximum size of 32KB`);
    }
    if (value) return value;
    if (optional) return undefined;
    throw new ConfigError(`environment variable key "${key}" not found in file "${join(volume.hostPath, path)}"`);
  }
}
