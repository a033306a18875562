import { type Container, describePod, type IdentifiedPod } from "../../../ground/model/index.ts";
import type { ImageUser } from "./context.ts";
import { ConfigError } from "./errors.ts";

const largestUid = 2_147_483_647n;

/** Refuses a container that must not run as root and might. Only numbers can be judged: a name may mean any user. */
export function verifyRunAsNonRoot(pod: IdentifiedPod, container: Container, image: ImageUser): void {
  const ofContainer = container.securityContext;
  const ofPod = pod.spec.securityContext;
  if ((ofContainer?.runAsNonRoot ?? ofPod?.runAsNonRoot) !== true) return;
  const where = `(pod: "${describePod(pod)}", container: ${container.name})`;
  const runAsUser = ofContainer?.runAsUser ?? ofPod?.runAsUser;
  if (runAsUser !== undefined) {
    if (runAsUser === 0) throw new ConfigError(`container's runAsUser breaks non-root policy ${where}`);
    return;
  }
  if (image.uid === undefined && image.username) {
    throw new ConfigError(
      `container has runAsNonRoot and image has non-numeric user (${image.username}), ` +
        `cannot verify user is non-root ${where}`,
    );
  }
  const uid = image.uid ?? 0n;
  if (uid === 0n) throw new ConfigError(`container has runAsNonRoot and image will run as root ${where}`);
  if (uid < 0n || uid > largestUid) {
    throw new ConfigError(
      `container has runAsNonRoot and image has an invalid user id (${uid}). (Must be 1-(${largestUid})): ` +
        `must be between 0 and ${largestUid}, inclusive ${where}`,
    );
  }
}
