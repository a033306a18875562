import { getObject, type KubeClient, resources } from "../../connections/kube/index.ts";
import type { TokenRequest } from "../../ground/model/index.ts";
import type { ServiceAccounts } from "./credential-plugin.ts";

/** Port: tokens of service accounts, kept until they are about to expire. */
export interface AccountTokens {
  get(
    namespace: string,
    serviceAccount: string,
    spec: TokenRequest["spec"],
    signal: AbortSignal,
  ): Promise<{ readonly token: string }>;
}

/** Service accounts of pods, for credential providers that are to know on whose behalf an image is pulled. */
export function pullAccounts(parts: {
  readonly client: Pick<KubeClient, "get">;
  readonly tokens: AccountTokens;
}): ServiceAccounts {
  const { client, tokens } = parts;
  return {
    async get(namespace, name, signal) {
      const account = await getObject(client, resources.serviceAccounts, { namespace, name }, "latest", signal);
      if (account === undefined) throw new Error(`service account "${namespace}/${name}" not found`);
      return { uid: account.metadata?.uid ?? "", annotations: account.metadata?.annotations ?? {} };
    },
    async requestToken({ namespace, name, uid, serviceAccountName }, audience, signal) {
      const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
      const spec = { audiences: [audience], boundObjectRef };
      return (await tokens.get(namespace, serviceAccountName, spec, signal)).token;
    },
  };
}
