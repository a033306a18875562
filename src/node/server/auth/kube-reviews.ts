import { ApiError, ConnectionError, type KubeClient, resources } from "../../../connections/kube/index.ts";
import type { SubjectAccessReview, TokenReview } from "../../../ground/model/index.ts";
import type { Reviews } from "./reviews.ts";

const transientCodes: ReadonlySet<number> = new Set([429, 500, 504]);

/** Asks the API server who a token belongs to, and what somebody may do. */
export function kubeReviews(client: Pick<KubeClient, "create">): Reviews {
  return {
    async token(token, signal) {
      const { apiVersion, kind } = resources.tokenReviews;
      const review: TokenReview = { apiVersion, kind, spec: { token } };
      const { status } = await client.create(resources.tokenReviews, {}, review, signal);
      return status ?? {};
    },
    async access(spec, signal) {
      const { apiVersion, kind } = resources.subjectAccessReviews;
      const review: SubjectAccessReview = { apiVersion, kind, spec };
      const { status } = await client.create(resources.subjectAccessReviews, {}, review, signal);
      return status ?? { allowed: false };
    },
    isTransient: (error) =>
      error instanceof ConnectionError ||
      (error instanceof ApiError && (transientCodes.has(error.code) || error.retryAfterMs !== undefined)),
  };
}
