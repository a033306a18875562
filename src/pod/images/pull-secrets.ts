import { aFewAtOnce, mapAtMost } from "../../ground/base/index.ts";
import type { IdentifiedPod, RecordPodEvent, Secret } from "../../ground/model/index.ts";

export interface PullSecretPorts {
  /** The secret, or undefined when it cannot be had now, for whatever reason. */
  getSecret(namespace: string, name: string): Promise<Secret | undefined>;
  readonly recordEvent: RecordPodEvent;
}

/** The pod's pull secrets that can be read; those that cannot are announced, and the pull goes on without them. */
export async function readPullSecrets(pod: IdentifiedPod, ports: PullSecretPorts): Promise<readonly Secret[]> {
  const names = (pod.spec.imagePullSecrets ?? []).flatMap(({ name = "" }) => (name === "" ? [] : [name]));
  const found = await mapAtMost(aFewAtOnce, names, (name) => ports.getSecret(pod.metadata.namespace, name));
  const missing = names.filter((_, index) => found[index] === undefined);
  if (missing.length > 0) {
    ports.recordEvent(pod, {
      type: "Warning",
      reason: "FailedToRetrieveImagePullSecret",
      message:
        `Unable to retrieve some image pull secrets (${missing.join(", ")}); ` +
        "attempting to pull the image may not succeed.",
    });
  }
  return found.filter((secret) => secret !== undefined);
}
