import { nodeOf } from "../admission/node-restriction.ts";
import { forbidden } from "../api-error.ts";
import { csiNodes, type Kind, leases } from "../kinds/index.ts";
import type { Strategy } from "../rest/world.ts";

/** Of some kinds a node may create the object that has its name, and no other. */
function onlyOwnName(kind: Kind, refusal: string): Strategy {
  return {
    admitCreate(object, _world, { user }) {
      const node = nodeOf(user);
      const name = object.metadata.name ?? "";
      if (node !== undefined && name !== node) throw forbidden(kind, name, refusal);
      return object;
    },
  };
}

export const ownLease: Strategy = onlyOwnName(
  leases,
  "can only access node lease with the same name as the requesting node",
);
export const ownCsiNode: Strategy = onlyOwnName(
  csiNodes,
  "can only access CSINode with the same name as the requesting node",
);
