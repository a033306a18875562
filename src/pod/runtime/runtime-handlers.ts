import type { IdentifiedPod, RuntimeClass } from "../../ground/model/index.ts";

/** Port: the cluster's RuntimeClasses. */
export interface RuntimeClasses {
  get(namespace: undefined, name: string): RuntimeClass | undefined;
}

/** The runtime's handler that a pod's RuntimeClass names; throws while the class is unknown. */
export function runtimeHandlers(classes: RuntimeClasses | undefined): (pod: IdentifiedPod) => string {
  return ({ spec: { runtimeClassName } }) => {
    if (runtimeClassName === undefined || runtimeClassName === "") return "";
    // Without an API server there are no classes, so the name is the handler's.
    if (classes === undefined) return runtimeClassName;
    const found = classes.get(undefined, runtimeClassName);
    if (found === undefined) throw new Error(`RuntimeClass "${runtimeClassName}" not found`);
    return found.handler;
  };
}
