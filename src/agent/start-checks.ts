import type { AgentConfig } from "../config/index.ts";

/** What the host and the mode rule out; throws with the words upstream uses for it. */
export function checkStart(
  { kubelet }: Pick<AgentConfig, "kubelet">,
  { standalone, swaps }: { readonly standalone: boolean; readonly swaps: readonly string[] },
): void {
  if (standalone && kubelet.authentication.webhook.enabled) {
    throw new Error(
      "no client provided, cannot use webhook authentication: set authentication.webhook.enabled to false, or give a --kubeconfig",
    );
  }
  if (standalone && kubelet.authorization.mode === "Webhook") {
    throw new Error(
      "no client provided, cannot use webhook authorization: set authorization.mode to AlwaysAllow, or give a --kubeconfig",
    );
  }
  if (kubelet.failSwapOn && swaps.length > 0) {
    throw new Error(
      `running with swap on is not supported, please disable swap or set --fail-swap-on flag to false (found ${swaps.join(", ")})`,
    );
  }
}
