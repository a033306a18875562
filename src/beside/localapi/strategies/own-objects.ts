import { ProblemList } from "../../../ground/model/index.ts";
import { nodeOf } from "../admission/node-restriction.ts";
import { objectAt } from "../json.ts";
import { csiNodes, type Kind, leases } from "../kinds/index.ts";
import type { Strategy } from "../rest/world.ts";
import { forbidden } from "../status-error.ts";

/** Of some kinds a node may create the object that has its name, and no other. */
function onlyOwnName(kind: Kind, refusal: string, validateCreate?: Strategy["validateCreate"]): Strategy {
  return {
    ...(validateCreate && { validateCreate, validateUpdate: validateCreate }),
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
  (lease) => {
    const problems = new ProblemList();
    const { leaseDurationSeconds: seconds } = objectAt(lease, "spec");
    if (typeof seconds === "number" && seconds <= 0) {
      problems.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    return problems.problems;
  },
);
export const ownCsiNode: Strategy = onlyOwnName(
  csiNodes,
  "can only access CSINode with the same name as the requesting node",
);
