import { type Clock, isAbort, type Logger } from "../../../ground/base/index.ts";
import { type ClusterAccess, loadKubeconfig } from "../access/index.ts";
import type { KubeClients } from "../clients.ts";
import { type BootstrapPorts, bootstrapClientCertificate } from "./bootstrap-at-once.ts";
import { hasValidCertificate, writeKubeconfig } from "./kubeconfig-file.ts";

export interface TlsBootstrapSettings {
  readonly nodeName: string;
  readonly certDir: string;
  /** Names the certificate in the end; the agent writes it. */
  readonly kubeconfig: string;
  /** "" when there are no bootstrap credentials. */
  readonly bootstrapKubeconfig: string;
  readonly rotateCertificates: boolean;
}

export interface TlsBootstrapPorts extends Pick<BootstrapPorts, "clock" | "log" | "random" | "store"> {
  /** For requests with the bootstrap credentials. */
  readonly newClients: (access: ClusterAccess) => KubeClients;
}

/**
 * Sees to the node's first client certificate, where it has none and bootstrap credentials to ask for one with. When this
 * resolves, there is a kubeconfig that names the certificate; with rotation that one may still be to come.
 */
export async function bootstrapTls(
  settings: TlsBootstrapSettings,
  ports: TlsBootstrapPorts,
  signal: AbortSignal,
): Promise<void> {
  const { store, log } = ports;
  const { kubeconfig, bootstrapKubeconfig } = settings;
  const choice = await chooseBootstrap(settings, ports);
  if (choice === "none") return;
  const access = await loadKubeconfig(bootstrapKubeconfig);
  if (choice === "at once") await waitForCertificate(settings, access, ports, signal);
  else log.info("Client rotation is on, will bootstrap in background");
  await writeKubeconfig(kubeconfig, access, store.currentPath);
}

/**
 * How the node gets its first client certificate:
 *
 * none           it has a valid one, or no credentials to ask for one
 * at once        asked for and waited for (bootstrap-at-once.ts), since nobody else would ask for it later
 * in background  asked for by the rotation (rotation.ts), which runs anyway
 */
type BootstrapChoice = "none" | "at once" | "in background";

export async function chooseBootstrap(
  settings: Pick<TlsBootstrapSettings, "kubeconfig" | "bootstrapKubeconfig" | "rotateCertificates">,
  ports: { readonly clock: Clock; readonly log: Logger },
): Promise<BootstrapChoice> {
  if (settings.bootstrapKubeconfig === "" || (await hasValidCertificate(settings.kubeconfig, ports))) return "none";
  return settings.rotateCertificates ? "in background" : "at once";
}

async function waitForCertificate(
  { nodeName, certDir }: TlsBootstrapSettings,
  access: ClusterAccess,
  { newClients, ...ports }: TlsBootstrapPorts,
  signal: AbortSignal,
): Promise<void> {
  using clients = newClients(access);
  try {
    await bootstrapClientCertificate(nodeName, certDir, { ...ports, client: clients.main }, signal);
  } catch (error) {
    if (isAbort(error, signal)) throw error;
    throw new Error("Cannot get the node's first client certificate from the API server", { cause: error });
  }
}
