import type { IdentifiedPod } from "../../../ground/model/index.ts";

/**
 * The one user that all containers of the pod run as; undefined when they differ or leave it to the image. Ephemeral
 * containers don't count: a debugger that comes later must not change who may read a token.
 */
export function commonUser({ spec }: IdentifiedPod): number | undefined {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const users = new Set(
    containers.map(({ securityContext }) => securityContext?.runAsUser ?? spec.securityContext?.runAsUser),
  );
  const [only] = users;
  return users.size === 1 ? only : undefined;
}
