import { isStaticPod } from "../../ground/model/index.ts";
import { type AdmissionHandler, admitted, rejected } from "./admission.ts";

const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";

/** Refuses pods that want to be confined by AppArmor where the kernel has none. */
export function appArmorHandler(isEnabled: boolean): AdmissionHandler {
  return (pod) => {
    // A pod that already ran was admitted before.
    if (isEnabled || (pod.status?.phase !== undefined && pod.status.phase !== "Pending")) return admitted;
    const { initContainers = [], containers, securityContext } = pod.spec;
    const fields = [
      securityContext,
      ...[...initContainers, ...containers].map((container) => container.securityContext),
    ];
    const byField = fields.some(
      (context) => context?.appArmorProfile !== undefined && context.appArmorProfile.type !== "Unconfined",
    );
    const byAnnotation = Object.entries(pod.metadata.annotations ?? {}).some(
      ([key, value]) => key.startsWith(appArmorAnnotation) && value !== "unconfined" && value !== "",
    );
    if (!byField && !byAnnotation) return admitted;
    return rejected("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
  };
}

/**
 * Refuses pods while the node is being turned off. One that only this node can run waits instead: it comes back with
 * the node, and is not to be refused for good where the shutdown is called off.
 */
export function shutdownHandler(isShuttingDown: () => boolean): AdmissionHandler {
  return (pod) => {
    if (!isShuttingDown()) return admitted;
    if (isStaticPod(pod)) return { type: "undecided", waitsFor: "the node, which is shutting down" };
    return rejected("NodeShutdown", "Pod was rejected as the node is shutting down.");
  };
}

/** Refuses pods with resources as a whole where the node's administrator has switched that off. */
export function podLevelHandler(isEnabled: boolean): AdmissionHandler {
  return ({ spec: { resources } }) => {
    const isSet = Object.keys({ ...resources?.requests, ...resources?.limits }).length > 0;
    if (isEnabled || !isSet) return admitted;
    return rejected("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled");
  };
}

/** Refuses what is meant for another operating system. */
export const osHandler: AdmissionHandler = (pod) => {
  const os = pod.spec.os?.name;
  if (os !== undefined && os !== "linux") {
    return rejected("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS");
  }
  const label = pod.metadata.labels?.["kubernetes.io/os"];
  if (label !== undefined && label !== "linux") {
    return rejected(
      "PodOSSelectorNodeLabelDoesNotMatch",
      "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    );
  }
  return admitted;
};

/** Refuses a strict group policy that the runtime would silently not follow. */
export function groupsPolicyHandler(supportsStrict: () => boolean | undefined): AdmissionHandler {
  return (pod) => {
    if (pod.spec.securityContext?.supplementalGroupsPolicy !== "Strict") return admitted;
    const isSupported = supportsStrict();
    if (isSupported === undefined)
      return { type: "undecided", waitsFor: "the container runtime to say what it can do" };
    if (isSupported) return admitted;
    const message = "SupplementalGroupsPolicy=Strict is not supported in this node";
    return rejected("SupplementalGroupsPolicyNotSupported", message);
  };
}
