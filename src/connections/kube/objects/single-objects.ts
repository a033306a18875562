import type { TokenRequest, TokenRequestSpec } from "../../../ground/model/index.ts";
import { isNotFound } from "../api-error.ts";
import type { KubeClient } from "../client.ts";
import { type KubeObject, type Resource, resources } from "../resources.ts";
import type { NamedObject } from "./object-watches.ts";

/** The object, or undefined when there is none. `cached`: what the server has at hand is new enough. */
export async function getObject<Kind extends KubeObject>(
  client: Pick<KubeClient, "get">,
  resource: Resource<Kind>,
  object: NamedObject,
  freshness: "latest" | "cached",
  signal: AbortSignal,
): Promise<Kind | undefined> {
  try {
    return await client.get(resource, object, freshness === "cached" ? { resourceVersion: "0" } : {}, signal);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Asks for a token of a service account. */
export function requestToken(
  client: Pick<KubeClient, "create">,
  namespace: string,
  serviceAccount: string,
  spec: TokenRequestSpec,
  signal: AbortSignal,
): Promise<TokenRequest> {
  const { apiVersion, kind } = resources.tokenRequests;
  const ref = { namespace, name: serviceAccount, subresource: "token" };
  return client.create(resources.serviceAccounts, ref, { apiVersion, kind, spec }, signal);
}
