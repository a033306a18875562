import type { Clock, Logger } from "../../../ground/base/index.ts";
import { hasValidCertificate } from "./kubeconfig-file.ts";

/**
 * How the node gets its first client certificate:
 *
 * none           it has a valid one, or no credentials to ask for one
 * at once        asked for and waited for (bootstrap-at-once.ts), since nobody else would ask for it later
 * in background  asked for by the rotation (rotation.ts), which runs anyway
 */
export type BootstrapChoice = "none" | "at once" | "in background";

export async function chooseBootstrap(
  settings: {
    readonly kubeconfig: string;
    /** "" when there are no bootstrap credentials. */
    readonly bootstrapKubeconfig: string;
    readonly rotateCertificates: boolean;
  },
  ports: { readonly clock: Clock; readonly log: Logger },
): Promise<BootstrapChoice> {
  if (settings.bootstrapKubeconfig === "" || (await hasValidCertificate(settings.kubeconfig, ports))) return "none";
  return settings.rotateCertificates ? "in background" : "at once";
}
