import { deepFreeze } from "../base/index.ts";
import { defaultGraceSeconds } from "./grace-period.ts";
import type { Pod, PodSpec } from "./kube/gen/types.ts";
import {
  defaultContainer,
  defaultEphemeralContainer,
  roundedList,
  roundedResources,
} from "./pod-defaults-container.ts";
import { defaultPodLevelResources } from "./pod-defaults-resources.ts";
import { defaultVolume } from "./pod-defaults-volume.ts";

/** The pod with every default of the v1 API filled in. Pure; the result is deeply frozen. */
export function defaultPod(pod: Pod): Pod {
  return deepFreeze({ ...pod, spec: defaultPodSpec(pod.spec ?? { containers: [] }) });
}

function defaultPodSpec(spec: PodSpec): PodSpec {
  const hostNetwork = spec.hostNetwork === true;
  const { initContainers, ephemeralContainers, volumes, overhead, resources } = spec;
  const containers = spec.containers.map((container) => defaultContainer(container, hostNetwork));
  const serviceAccountName = spec.serviceAccountName || spec.serviceAccount;
  const filled: PodSpec = {
    ...spec,
    // The older name of the same field is still in use; both are kept alike.
    ...(serviceAccountName && { serviceAccountName, serviceAccount: serviceAccountName }),
    containers,
    ...(initContainers && {
      initContainers: initContainers.map((container) => defaultContainer(container, hostNetwork)),
    }),
    ...(ephemeralContainers && { ephemeralContainers: ephemeralContainers.map(defaultEphemeralContainer) }),
    ...(volumes && { volumes: volumes.map(defaultVolume) }),
    ...(resources && { resources: roundedResources(resources) }),
    ...(overhead && { overhead: roundedList(overhead) }),
    restartPolicy: spec.restartPolicy || "Always",
    dnsPolicy: spec.dnsPolicy || "ClusterFirst",
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? defaultGraceSeconds,
    schedulerName: spec.schedulerName || "default-scheduler",
    securityContext: spec.securityContext ?? {},
    enableServiceLinks: spec.enableServiceLinks ?? true,
  };
  return defaultPodLevelResources(filled);
}
