import type { CertificateFigures } from "../../connections/kube/index.ts";
import type { MetricRegistry } from "../../ground/metrics/index.ts";

const rotationSeconds = [60, 3_600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000];

/** The certificate that the agent shows to the API server and keeps renewing. */
export function showClientCertificate(registry: MetricRegistry, certificate: CertificateFigures): void {
  const help = "[ALPHA] Seconds until the agent's client certificate expires; below 0: since it did";
  registry.read("kubelet_certificate_manager_client_ttl_seconds", "gauge", help, [], () => [
    [{}, certificate.ttlSeconds()],
  ]);
  const errors = "[ALPHA] Renewals of the agent's client certificate that failed";
  registry.read("certificate_manager_client_expiration_renew_errors", "counter", errors, [], () => [
    [{}, certificate.renewErrors],
  ]);
}

/** The certificate that the node's API is served with, when the API server signs it. */
export function showServingCertificate(registry: MetricRegistry, certificate: CertificateFigures): void {
  const help = "[ALPHA] Seconds until the serving certificate expires; +Inf: there is none";
  registry.read("kubelet_certificate_manager_server_ttl_seconds", "gauge", help, [], () => [
    [{}, certificate.ttlSeconds()],
  ]);
  registry.read("kubelet_server_expiration_renew_errors", "counter", "[ALPHA] Renewals of it that failed", [], () => [
    [{}, certificate.renewErrors],
  ]);
  const ages = registry.histogram(
    "kubelet_certificate_manager_server_rotation_seconds",
    "[ALPHA] How old serving certificates were when another took their place",
    rotationSeconds,
  );
  certificate.onRotated((ageSeconds) => ages.observe({}, ageSeconds));
}
