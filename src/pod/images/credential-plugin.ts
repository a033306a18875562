import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Clock, Logger } from "../../ground/base/index.ts";
import { isAbort, messageOf, runProgram, SharedWork } from "../../ground/base/index.ts";
import type { DockerConfig } from "./docker-config.ts";
import type { LoginSource } from "./keyring.ts";
import type { CredentialProviderSettings, TokenSettings } from "./plugin-config.ts";
import {
  decodePluginResponse,
  encodePluginRequest,
  type PluginResponse,
  PluginResponseError,
} from "./plugin-protocol.ts";
import { matchesRegistry, parseRegistryPattern } from "./registry-pattern.ts";

/** What a plugin needs to know of the pod that wants the image. */
export interface PullingPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Empty: the pod has none, as static pods do. */
  readonly serviceAccountName: string;
}

/** Service accounts and their tokens; absent when the agent has no API server. */
export interface ServiceAccounts {
  get(
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly uid: string; readonly annotations: Readonly<Record<string, string>> }>;
  /** A token of the pod's account for the audience, bound to the pod. */
  requestToken(pod: PullingPod, audience: string, signal: AbortSignal): Promise<string>;
}

export interface PluginPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** The agent's own environment; the configured variables are laid over it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly serviceAccounts: ServiceAccounts | undefined;
  onCall(call: { readonly plugin: string; readonly durationMs: number; readonly failed: boolean }): void;
}

const purgeEveryMs = 15 * 60_000;

/** One credential provider: a program asked for the logins of an image, its answers cached as it says. */
export class CredentialPlugin {
  readonly #settings: CredentialProviderSettings;
  readonly #program: string;
  readonly #ports: PluginPorts;
  readonly #cache = new Map<string, { readonly logins: DockerConfig; readonly expiresAt: number }>();
  readonly #calls = new SharedWork<string, DockerConfig>();
  #purgedAt: number;

  constructor(settings: CredentialProviderSettings, binDir: string, ports: PluginPorts) {
    this.#settings = settings;
    this.#program = join(binDir, settings.name);
    this.#ports = ports;
    this.#purgedAt = ports.clock.monotonic();
  }

  /** Logins for the repository; none when the plugin does not serve it or fails, which is logged only. */
  async provide(repository: string, pod: PullingPod, signal: AbortSignal): Promise<ProvidedLogins> {
    const image = parseRegistryPattern(repository);
    if (image === undefined || !this.#settings.matchImages.some((pattern) => matchesRegistry(pattern, image))) {
      return nothing;
    }
    try {
      const identity = await this.#identify(pod, signal);
      if (identity === "skip") return nothing;
      const logins = this.#cached(repository, identity) ?? (await this.#ask(repository, identity, signal));
      return { logins, source: identity.source };
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.error("Credential provider plugin gave no credentials", error, {
        plugin: this.#settings.name,
        image: repository,
      });
      return nothing;
    }
  }

  async #identify(pod: PullingPod, signal: AbortSignal): Promise<Identity | "skip"> {
    const { token: settings } = this.#settings;
    if (settings === undefined) return anonymous;
    const { serviceAccounts } = this.#ports;
    if (pod.serviceAccountName === "" || serviceAccounts === undefined) {
      return settings.requireServiceAccount ? "skip" : anonymous;
    }
    const account = await serviceAccounts.get(pod.namespace, pod.serviceAccountName, signal);
    const annotations = selectAnnotations(settings, account.annotations);
    if (annotations === undefined) return "skip";
    const token = await serviceAccounts.requestToken(pod, settings.audience, signal);
    return {
      scope: JSON.stringify([
        pod.namespace,
        pod.serviceAccountName,
        account.uid,
        Object.entries(annotations).sort(),
        settings.cacheBy === "Token" ? createHash("sha256").update(token).digest("hex") : "",
      ]),
      source: { type: "serviceAccount", uid: account.uid, namespace: pod.namespace, name: pod.serviceAccountName },
      serviceAccount: { token, annotations },
    };
  }

  #ask(repository: string, identity: Identity, signal: AbortSignal): Promise<DockerConfig> {
    const key = JSON.stringify([identity.scope, repository]);
    return this.#calls.join(key, (callSignal) => this.#call(repository, identity, callSignal), signal);
  }

  async #call(repository: string, identity: Identity, signal: AbortSignal): Promise<DockerConfig> {
    const { clock, onCall } = this.#ports;
    const startedAt = clock.monotonic();
    let failed = true;
    try {
      const response = await this.#exchange(repository, identity, signal);
      failed = false;
      this.#remember(repository, identity, response);
      return response.logins;
    } finally {
      onCall({ plugin: this.#settings.name, durationMs: clock.monotonic() - startedAt, failed });
    }
  }

  async #exchange(repository: string, identity: Identity, signal: AbortSignal): Promise<PluginResponse> {
    const { apiVersion, args, env, token } = this.#settings;
    const { clock, environment } = this.#ports;
    const secret = identity.serviceAccount?.token;
    const own = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const input = encodePluginRequest({ apiVersion, image: repository, serviceAccount: identity.serviceAccount });
    let answer: string;
    try {
      answer = await runProgram(
        { program: this.#program, args, env: { ...environment, ...own }, input },
        clock,
        signal,
      );
    } catch (error) {
      if (isAbort(error, signal) || secret === undefined) throw error;
      throw new Error(messageOf(error).replaceAll(secret, "(token)"));
    }
    const response = decodePluginResponse(answer, apiVersion);
    if (secret !== undefined && token?.cacheBy === "ServiceAccount") {
      if (response.logins.some(([, login]) => login.password === secret)) {
        throw new PluginResponseError("the answer returns the pod's token as password, which needs cacheType Token");
      }
    }
    return response;
  }

  #cached(repository: string, identity: Identity): DockerConfig | undefined {
    const now = this.#ports.clock.monotonic();
    if (now - this.#purgedAt >= purgeEveryMs) {
      for (const [key, entry] of this.#cache) if (entry.expiresAt <= now) this.#cache.delete(key);
      this.#purgedAt = now;
    }
    for (const cacheBy of ["Image", "Registry", "Global"] as const) {
      const entry = this.#cache.get(cacheKey(cacheBy, repository, identity));
      if (entry !== undefined && entry.expiresAt > now) return entry.logins;
    }
    return undefined;
  }

  #remember(repository: string, identity: Identity, response: PluginResponse): void {
    const cacheMs = response.cacheMs ?? this.#settings.defaultCacheMs;
    if (cacheMs <= 0) return;
    const expiresAt = this.#ports.clock.monotonic() + cacheMs;
    this.#cache.set(cacheKey(response.cacheBy, repository, identity), { logins: response.logins, expiresAt });
  }
}

export interface ProvidedLogins {
  readonly logins: DockerConfig;
  readonly source: LoginSource;
}

/** On whose behalf the plugin is asked; answers are shared only within one scope. */
interface Identity {
  readonly scope: string;
  readonly source: LoginSource;
  readonly serviceAccount:
    | { readonly token: string; readonly annotations: Readonly<Record<string, string>> }
    | undefined;
}

const anonymous: Identity = { scope: "", source: { type: "node" }, serviceAccount: undefined };
const nothing: ProvidedLogins = { logins: [], source: { type: "node" } };

function cacheKey(cacheBy: PluginResponse["cacheBy"], repository: string, identity: Identity): string {
  return JSON.stringify([identity.scope, cacheBy, sharedPart(cacheBy, repository)]);
}

function sharedPart(cacheBy: PluginResponse["cacheBy"], repository: string): string | undefined {
  switch (cacheBy) {
    case "Image":
      return repository;
    case "Registry":
      return repository.split("/", 1)[0];
    case "Global":
      return "";
  }
}

/** The annotations the plugin may see, or undefined when one it needs is missing. */
function selectAnnotations(
  settings: TokenSettings,
  annotations: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> | undefined {
  if (settings.requiredAnnotations.some((key) => annotations[key] === undefined)) return undefined;
  const wanted = [...settings.requiredAnnotations, ...settings.optionalAnnotations];
  return Object.fromEntries(wanted.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]]])));
}
