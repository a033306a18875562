import { NamespaceMode, type UserNamespace } from "../../../connections/cri/index.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import type { AllocateIds, RuntimeHandlerInfo } from "./context.ts";
import { ConfigError } from "./errors.ts";

export interface UserNamespaceContext {
  readonly runtimeHandler: RuntimeHandlerInfo;
  readonly allocateIds: AllocateIds;
}

/** Always said explicitly: a runtime takes silence for a user namespace without mappings. */
export async function userNamespaceOf(pod: IdentifiedPod, context: UserNamespaceContext): Promise<UserNamespace> {
  if (pod.spec.hostUsers !== false) return { mode: NamespaceMode.NODE, uids: [], gids: [] };
  const { name, userNamespaces } = context.runtimeHandler;
  if (!userNamespaces) {
    const who = name === "" ? "runtime" : `RuntimeClass handler "${name}"`;
    throw new ConfigError(`can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`);
  }
  const { firstHostId, length } = await context.allocateIds(pod);
  const mapping = { hostId: firstHostId, containerId: 0, length };
  return { mode: NamespaceMode.POD, uids: [mapping], gids: [mapping] };
}
