import { FieldReader, parseDuration } from "../../ground/base/index.ts";
import type { DockerConfig } from "./docker-config.ts";

export interface PluginRequest {
  readonly apiVersion: string;
  /** Repository with registry, without tag and digest. */
  readonly image: string;
  readonly serviceAccount:
    | { readonly token: string; readonly annotations: Readonly<Record<string, string>> }
    | undefined;
}

export interface PluginResponse {
  readonly cacheBy: "Image" | "Registry" | "Global";
  /** undefined: as the configuration says. */
  readonly cacheMs: number | undefined;
  readonly logins: DockerConfig;
}

/** The program's answer breaks the protocol. Says no more than which field, for the answer holds secrets. */
export class PluginResponseError extends Error {
  override readonly name = "PluginResponseError";
}

export function encodePluginRequest(request: PluginRequest): string {
  const { apiVersion, image, serviceAccount } = request;
  return JSON.stringify({
    kind: "CredentialProviderRequest",
    apiVersion,
    image,
    ...(serviceAccount === undefined
      ? {}
      : { serviceAccountToken: serviceAccount.token, serviceAccountAnnotations: serviceAccount.annotations }),
  });
}

/** Decodes an answer strictly; its version must be the one asked with. */
export function decodePluginResponse(text: string, apiVersion: string): PluginResponse {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new PluginResponseError("the answer is not valid JSON");
  }
  const problems: string[] = [];
  const response = FieldReader.of(document, "", problems);
  if (response.string("kind") !== "CredentialProviderResponse") problems.push("kind is not CredentialProviderResponse");
  if (response.string("apiVersion") !== apiVersion) problems.push(`apiVersion is not ${apiVersion}`);
  const cacheBy = response.string("cacheKeyType");
  const cacheMs = response.has("cacheDuration") ? parseDuration(response.string("cacheDuration")) : undefined;
  if (response.has("cacheDuration") && cacheMs === undefined) problems.push("cacheDuration is no duration");
  const auth = response.object("auth");
  const logins = auth.names().map((location) => {
    const entry = auth.object(location);
    const login = { username: entry.string("username"), password: entry.string("password") };
    entry.refuseOthers();
    return [location, login] as const;
  });
  response.refuseOthers();
  if (problems.length > 0) throw new PluginResponseError(`the answer is malformed: ${problems.join("; ")}`);
  if (cacheBy !== "Image" && cacheBy !== "Registry" && cacheBy !== "Global") {
    throw new PluginResponseError("cacheKeyType is none of Image, Registry, Global");
  }
  return { cacheBy, cacheMs, logins };
}
