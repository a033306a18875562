import { containersOf, type IdentifiedPod } from "../../model/index.ts";

/** The one user that all containers of the pod run as; undefined when they differ or leave it to the image. */
export function commonUser(pod: IdentifiedPod): number | undefined {
  const users = new Set(
    containersOf(pod).map(
      ({ container }) => container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser,
    ),
  );
  const [only] = users;
  return users.size === 1 ? only : undefined;
}
