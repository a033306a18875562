import { isIP } from "node:net";
import {
  apiTime,
  decodeObject,
  defaultPod,
  type IdentifiedPod,
  isTerminalPhase,
  jsonEqual,
  type Pod,
  type Problem,
  ProblemList,
  qosClassOf,
  validatePod,
} from "../../../ground/model/index.ts";
import { nodeMayReport, nodeMayTouchPod } from "../admission/node-restriction.ts";
import { admitPod, withDefaultTolerations } from "../admission/pods.ts";
import { isObject, type JsonObject, listAt, objectAt, stringAt } from "../json.ts";
import { pods } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Strategy } from "../rest/world.ts";
import { invalid } from "../status-error.ts";
import { onlyEphemeralContainers } from "./pod-parts.ts";
import { resizedPod } from "./pod-resize.ts";

const asPod = (object: ApiObject): Pod => object as unknown as Pod;
const asObject = (pod: Pod): ApiObject => pod as unknown as ApiObject;

export const podStrategy: Strategy = {
  admitCreate(object, world, options) {
    const admitted = admitPod(complete(object), world, options);
    const isGated = listAt(admitted, "spec", "schedulingGates").length > 0;
    const lastTransitionTime = apiTime(world.clock.now());
    const status = {
      phase: "Pending",
      qosClass: qosClassOf(admitted as unknown as IdentifiedPod),
      ...(isGated && { conditions: [{ ...gatedCondition, lastTransitionTime }] }),
    };
    return { ...admitted, status };
  },
  validateCreate: (object) => validatePod(whole(object)),
  admitUpdate(object) {
    const filled = complete(object);
    return { ...filled, spec: { ...objectAt(filled, "spec"), tolerations: withDefaultTolerations(specOf(filled)) } };
  },
  validateUpdate: (object, old) => specProblems(asPod(object), asPod(old)),
  admitDelete: (object, _world, { user }) => nodeMayTouchPod(object, user, "delete"),
  admitSubresource(name, object, old, world, { user }) {
    nodeMayTouchPod(old, user, "status");
    if (name === "status") nodeMayReport(object, old, user);
    switch (name) {
      case "status": {
        const { qosClass } = objectAt(old, "status");
        const status = completeStatus(objectAt(object, "status"));
        requireAddresses(old.metadata.name ?? "", status);
        return { ...object, status: { ...(qosClass !== undefined && { qosClass }), ...status } };
      }
      case "ephemeralcontainers":
        return withOldEphemeralContainers(complete(onlyEphemeralContainers(object, old)), old);
      case "resize":
        return complete(resizedPod(object, old, world));
      default:
        return object;
    }
  },
  graceSeconds(object, asked) {
    const spec = objectAt(object, "spec");
    const phase = stringAt(object, "status", "phase");
    if ((spec["nodeName"] ?? "") === "" || isTerminalPhase(phase)) return 0;
    const own = spec["terminationGracePeriodSeconds"];
    const seconds = asked ?? (typeof own === "number" ? own : 0);
    return seconds < 0 ? 1 : seconds;
  },
};

/** With the empty value of each field that must be there and is not: what judges a pod relies on its type. */
function whole(object: ApiObject): Pod {
  return decodeObject(object, "Pod", "", new ProblemList()) as Pod;
}

type PodSpec = NonNullable<Pod["spec"]>;

function specOf(object: ApiObject): PodSpec {
  return asPod(object).spec ?? { containers: [] };
}

/** With every default, and with the structures that upstream shows even when they are empty. */
function complete(object: ApiObject): ApiObject {
  const filled = asObject(defaultPod(asPod(object)));
  const { nodeName, ...spec } = specOf(filled);
  const withResources = <Item extends object>(containers: readonly Item[]): readonly Item[] =>
    containers.map((container) => ({ resources: {}, ...container }));
  return {
    ...filled,
    spec: {
      ...spec,
      ...(nodeName && { nodeName }),
      containers: withResources(spec.containers),
      ...(spec.initContainers && { initContainers: withResources(spec.initContainers) }),
      ...(spec.ephemeralContainers && { ephemeralContainers: withResources(spec.ephemeralContainers) }),
    },
  };
}

function completeStatus(status: JsonObject): JsonObject {
  const lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"].filter(
    (key) => key in status,
  );
  const withStates = (key: string): readonly unknown[] =>
    listAt(status, key).map((entry) => (isObject(entry) ? { state: {}, lastState: {}, ...entry } : entry));
  return { ...status, ...Object.fromEntries(lists.map((key) => [key, withStates(key)])) };
}

function requireAddresses(name: string, status: JsonObject): void {
  const problems = new ProblemList();
  for (const [index, entry] of listAt(status, "podIPs").entries()) {
    const ip = stringAt(entry, "ip");
    if (isIP(ip) === 0) {
      problems.invalid(`status.podIPs[${index}]`, ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
  }
  if (problems.problems.length > 0) throw invalid(pods, name, problems.problems);
}

/** Ephemeral containers are added, never changed or taken away. */
function withOldEphemeralContainers(object: ApiObject, old: ApiObject): ApiObject {
  const problems = new ProblemList();
  const now = new Map(
    listAt(object, "spec", "ephemeralContainers").map((container) => [stringAt(container, "name"), container]),
  );
  for (const before of listAt(old, "spec", "ephemeralContainers")) {
    const name = stringAt(before, "name");
    const after = now.get(name);
    const what = after === undefined ? "removed" : jsonEqual(after, before) ? "" : "changed";
    if (what !== "") {
      problems.forbidden("spec.ephemeralContainers", `existing ephemeral containers "${name}" may not be ${what}\n`);
    }
  }
  if (problems.problems.length > 0) throw invalid(pods, old.metadata.name ?? "", problems.problems);
  return object;
}

const gatedCondition = {
  type: "PodScheduled",
  status: "False",
  reason: "SchedulingGated",
  message: "Scheduling is blocked due to non-empty scheduling gates",
  lastProbeTime: null,
};

function requireShorterDeadline(problems: ProblemList, wanted: number | undefined, current: number | undefined): void {
  const field = "spec.activeDeadlineSeconds";
  if (current === undefined) return;
  if (wanted === undefined) problems.invalid(field, null, "must not update from a positive integer to nil value");
  else if (wanted > current) problems.invalid(field, wanted, "must be less than or equal to previous value");
}

const changeable =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** The same text for the same values, in whatever order they came. */
function textOf(toleration: object): string {
  return JSON.stringify(Object.entries(toleration).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A pod that runs can't become another one; few fields of its spec may change. */
function specProblems(pod: Pod, old: Pod): readonly Problem[] {
  const problems = new ProblemList();
  const { spec } = pod;
  const { spec: oldSpec } = old;
  if (spec === undefined || oldSpec === undefined) return problems.problems;
  requireShorterDeadline(problems, spec.activeDeadlineSeconds, oldSpec.activeDeadlineSeconds);
  const kept = new Set((spec.tolerations ?? []).map(textOf));
  if ((oldSpec.tolerations ?? []).some((one) => !kept.has(textOf(one)))) {
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
  const gates = new Set((oldSpec.schedulingGates ?? []).map(({ name }) => name));
  if ((spec.schedulingGates ?? []).some(({ name }) => !gates.has(name)))
    problems.forbidden("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate");
  return problems.problems;
}
