import {
  defaultPod,
  type IdentifiedPod,
  jsonEqual,
  type Pod,
  type Problem,
  ProblemList,
  qosClassOf,
  validatePod,
} from "../../model/index.ts";
import { nodeMayTouchPod } from "../admission/node-restriction.ts";
import { admitPod } from "../admission/pods.ts";
import { objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import type { Strategy } from "../rest/world.ts";
import { keepAllowedResize, onlyEphemeralContainers } from "./pod-parts.ts";

const asPod = (object: ApiObject): Pod => object as unknown as Pod;
const asObject = (pod: Pod): ApiObject => pod as unknown as ApiObject;

export const podStrategy: Strategy = {
  admitCreate(object, world, options) {
    const admitted = admitPod(asObject(defaultPod(asPod(object))), world, options);
    const gates = objectAt(admitted, "spec")["schedulingGates"];
    const status = {
      phase: "Pending",
      qosClass: qosClassOf(admitted as unknown as IdentifiedPod),
      ...(Array.isArray(gates) && gates.length > 0 && { conditions: [gatedCondition] }),
    };
    return { ...admitted, status };
  },
  validateCreate: (object) => validatePod(asPod(object)),
  admitUpdate: (object) => asObject(defaultPod(asPod(object))),
  validateUpdate: (object, old) => specProblems(asPod(object), asPod(old)),
  admitDelete: (object, _world, { user }) => nodeMayTouchPod(object, user, "delete"),
  admitSubresource(name, object, old, _world, { user }) {
    nodeMayTouchPod(old, user, "update status of");
    switch (name) {
      case "status": {
        const { qosClass } = objectAt(old, "status");
        return { ...object, status: { ...(qosClass !== undefined && { qosClass }), ...objectAt(object, "status") } };
      }
      case "ephemeralcontainers":
        return asObject(defaultPod(asPod(onlyEphemeralContainers(object, old))));
      case "resize":
        return asObject(defaultPod(asPod(keepAllowedResize(object, old))));
      default:
        return object;
    }
  },
  graceSeconds(object, asked) {
    const spec = objectAt(object, "spec");
    const phase = stringAt(object, "status", "phase");
    if ((spec["nodeName"] ?? "") === "" || phase === "Failed" || phase === "Succeeded") return 0;
    const own = spec["terminationGracePeriodSeconds"];
    const seconds = asked ?? (typeof own === "number" ? own : 0);
    return seconds < 0 ? 1 : seconds;
  },
};

const gatedCondition = {
  type: "PodScheduled",
  status: "False",
  reason: "SchedulingGated",
  message: "Scheduling is blocked due to non-empty scheduling gates",
};

const changeable =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** A pod that runs can't become another one; few fields of its spec may change. */
function specProblems(pod: Pod, old: Pod): readonly Problem[] {
  const problems = new ProblemList();
  const { spec } = pod;
  const { spec: oldSpec } = old;
  if (spec === undefined || oldSpec === undefined) return problems.problems;
  const removed = (oldSpec.tolerations ?? []).filter(
    (one) => !(spec.tolerations ?? []).some((other) => jsonEqual(one, other)),
  );
  if (removed.length > 0) {
    problems.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds");
  }
  const withImages = {
    ...spec,
    containers: spec.containers.map((container, index) => ({ ...container, image: oldSpec.containers[index]?.image })),
    ...(spec.initContainers && {
      initContainers: spec.initContainers.map((container, index) => ({
        ...container,
        image: oldSpec.initContainers?.[index]?.image,
      })),
    }),
    activeDeadlineSeconds: oldSpec.activeDeadlineSeconds,
    tolerations: oldSpec.tolerations,
    schedulingGates: oldSpec.schedulingGates,
    ...((oldSpec.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1
      ? { terminationGracePeriodSeconds: oldSpec.terminationGracePeriodSeconds }
      : {}),
  };
  if (!jsonEqual(withImages, oldSpec)) problems.forbidden("spec", changeable);
  const added = (spec.schedulingGates ?? []).filter(
    ({ name }) => !(oldSpec.schedulingGates ?? []).some((gate) => gate.name === name),
  );
  if (added.length > 0)
    problems.forbidden("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate");
  return problems.problems;
}
