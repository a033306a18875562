// Resources and subresources that answer in ways of their own.
import type { Authenticator } from "../auth/authenticate.ts";
import type { Authorizer } from "../auth/authorize.ts";
import type { KeyPair } from "../auth/certificates.ts";
import type { TokenSigner } from "../auth/token-signer.ts";
import { type SpecialHandler, specialKey } from "../http/api.ts";
import { scalableKinds } from "../kinds/index.ts";
import { nodeMetrics, podMetrics } from "../metrics/metrics-api.ts";
import { needsUpgrade, podLogs, proxied } from "../proxy/handlers.ts";
import { bindPod } from "./binding.ts";
import { evictPod } from "./eviction.ts";
import { selfAccessReviews, selfReviews, subjectAccessReviews, tokenReviews } from "./reviews.ts";
import { scaleOf } from "./scale.ts";
import { tokenRequests } from "./token-request.ts";

export { boundTo } from "./binding.ts";

export interface SpecialParts {
  /** As whom the server calls kubelets. */
  readonly kubeletIdentity: KeyPair;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly signer: TokenSigner;
}

export function specialHandlers(parts: SpecialParts): Map<string, SpecialHandler> {
  const { authenticator, authorizer, signer, kubeletIdentity } = parts;
  const accessReviews = subjectAccessReviews(authorizer);
  return new Map<string, SpecialHandler>([
    [specialKey("pods", "", "binding"), bindPod],
    [specialKey("pods", "", "eviction"), evictPod],
    [specialKey("pods", "", "log"), podLogs(kubeletIdentity)],
    [specialKey("pods", "", "exec"), needsUpgrade],
    [specialKey("pods", "", "attach"), needsUpgrade],
    [specialKey("pods", "", "portforward"), needsUpgrade],
    [specialKey("pods", "", "proxy"), proxied(kubeletIdentity, "pod")],
    [specialKey("nodes", "", "proxy"), proxied(kubeletIdentity, "node")],
    ...scalableKinds.map((kind) => [specialKey(kind.plural, kind.group, "scale"), scaleOf(kind)] as const),
    [specialKey("nodes", "metrics.k8s.io", ""), nodeMetrics(kubeletIdentity)],
    [specialKey("pods", "metrics.k8s.io", ""), podMetrics(kubeletIdentity)],
    [specialKey("serviceaccounts", "", "token"), tokenRequests(signer)],
    [specialKey("tokenreviews", "authentication.k8s.io", ""), tokenReviews(authenticator, signer.issuer)],
    [specialKey("selfsubjectreviews", "authentication.k8s.io", ""), selfReviews],
    [specialKey("subjectaccessreviews", "authorization.k8s.io", ""), accessReviews],
    [specialKey("localsubjectaccessreviews", "authorization.k8s.io", ""), accessReviews],
    [specialKey("selfsubjectaccessreviews", "authorization.k8s.io", ""), selfAccessReviews(authorizer)],
  ]);
}
