import type { Containers } from "./containers.ts";
import type { Sandboxes } from "./sandboxes.ts";

interface AboutAPod {
  readonly config?: { readonly metadata?: { readonly uid?: string } };
  readonly podSandboxId?: string;
  readonly containerId?: string;
  readonly sandboxConfig?: { readonly metadata?: { readonly uid?: string } };
}

/** The uid of the pod a request is about; undefined when it is about none or one the runtime does not know. */
export function podUidOf(request: unknown, sandboxes: Sandboxes, containers: Containers): string | undefined {
  const { config, podSandboxId, containerId, sandboxConfig } = request as AboutAPod;
  if (podSandboxId) {
    return sandboxes.all().find(({ id }) => id.startsWith(podSandboxId))?.config.metadata?.uid;
  }
  if (containerId) {
    return containers.all().find(({ id }) => id.startsWith(containerId))?.sandbox.config.metadata?.uid;
  }
  return sandboxConfig?.metadata?.uid ?? config?.metadata?.uid;
}
