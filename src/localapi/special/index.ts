// Resources and subresources that answer in ways of their own.
import type { Authenticator } from "../auth/authenticate.ts";
import type { Authorizer } from "../auth/authorize.ts";
import type { TokenSigner } from "../auth/tokens.ts";
import { type SpecialHandler, specialKey } from "../http/api.ts";
import { bindPod } from "./binding.ts";
import { evictPod } from "./eviction.ts";
import { selfAccessReviews, selfReviews, subjectAccessReviews, tokenReviews } from "./reviews.ts";
import { tokenRequests } from "./token-request.ts";

export interface SpecialParts {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly signer: TokenSigner;
}

export function specialHandlers({ authenticator, authorizer, signer }: SpecialParts): Map<string, SpecialHandler> {
  const accessReviews = subjectAccessReviews(authorizer);
  return new Map([
    [specialKey("pods", "", "binding"), bindPod],
    [specialKey("pods", "", "eviction"), evictPod],
    [specialKey("serviceaccounts", "", "token"), tokenRequests(signer)],
    [specialKey("tokenreviews", "authentication.k8s.io", ""), tokenReviews(authenticator, signer.issuer)],
    [specialKey("selfsubjectreviews", "authentication.k8s.io", ""), selfReviews],
    [specialKey("subjectaccessreviews", "authorization.k8s.io", ""), accessReviews],
    [specialKey("localsubjectaccessreviews", "authorization.k8s.io", ""), accessReviews],
    [specialKey("selfsubjectaccessreviews", "authorization.k8s.io", ""), selfAccessReviews(authorizer)],
  ]);
}
