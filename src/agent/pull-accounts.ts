import { getObject, type KubeClient, resources } from "../connections/kube/index.ts";
import type { Clock, Logger } from "../ground/base/index.ts";
import type { ServiceAccounts } from "../pod/images/index.ts";
import { type RequestToken, TokenManager } from "../pod/volumes/index.ts";

/** Service accounts of pods, for credential providers that are to know on whose behalf an image is pulled. */
export function pullAccounts(parts: {
  readonly client: Pick<KubeClient, "get">;
  readonly requestToken: RequestToken;
  readonly clock: Clock;
  readonly log: Logger;
}): ServiceAccounts {
  const { client, requestToken, clock, log } = parts;
  const tokens = new TokenManager({ request: requestToken, clock, log, random: Math.random });
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
