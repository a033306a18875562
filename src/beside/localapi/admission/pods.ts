import { configMirrorAnnotation, type Pod } from "../../../ground/model/index.ts";
import { objectAt, stringAt } from "../json.ts";
import { pods, priorityClasses, runtimeClasses } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { World, WriteOptions } from "../rest/world.ts";
import { forbidden } from "../status-error.ts";
import { nodeMayCreate } from "./node-restriction.ts";
import { withServiceAccount } from "./service-account.ts";

type PodSpec = NonNullable<Pod["spec"]>;

/** What the API server adds to a new pod beyond its defaults, and which pods it refuses. */
export function admitPod(object: ApiObject, world: World, options: WriteOptions): ApiObject {
  nodeMayCreate(object, options.user, world);
  const isMirror = object.metadata.annotations?.[configMirrorAnnotation] !== undefined;
  const withAccount = isMirror ? object : withServiceAccount(object, world);
  const spec = withAccount["spec"] as PodSpec;
  const overhead = overheadOf(withAccount, spec, world);
  const admitted: PodSpec = {
    ...spec,
    ...overhead,
    ...priorityOf(withAccount, spec, world),
    tolerations: withDefaultTolerations(spec),
  };
  return { ...withAccount, spec: admitted };
}

type Tolerations = NonNullable<PodSpec["tolerations"]>;

const defaultTolerations: Tolerations = ["not-ready", "unreachable"].map((trouble) => ({
  key: `node.kubernetes.io/${trouble}`,
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 300,
}));

/** A pod outlives short troubles of its node, unless it says what it does. */
export function withDefaultTolerations({ tolerations = [] }: PodSpec): Tolerations {
  const missing = defaultTolerations.filter(
    ({ key }) =>
      !tolerations.some((own) => (own.key === key || !own.key) && (own.effect === "NoExecute" || !own.effect)),
  );
  return [...tolerations, ...missing];
}

function priorityOf(object: ApiObject, spec: PodSpec, world: World): Partial<PodSpec> {
  const { priorityClassName = "" } = spec;
  const refuse = (why: string): never => {
    throw forbidden(pods, object.metadata.name ?? "", why);
  };
  const classes = world.store.list(priorityClasses.storage);
  const chosen =
    priorityClassName === ""
      ? classes.find((found) => found["globalDefault"] === true)
      : classes.find((found) => found.metadata.name === priorityClassName);
  if (chosen === undefined && priorityClassName !== "") {
    refuse(`no PriorityClass with name ${priorityClassName} was found`);
  }
  const value = chosen?.["value"];
  const priority = typeof value === "number" ? value : 0;
  if (spec.priority !== undefined && spec.priority !== priority) {
    const why = `the integer value of priority (${spec.priority}) must not be provided in pod spec`;
    refuse(`${why}; priority admission controller computed ${priority} from the given PriorityClass name`);
  }
  return {
    priority,
    ...(chosen !== undefined && { priorityClassName: chosen.metadata.name }),
    preemptionPolicy: stringAt(chosen, "preemptionPolicy") || "PreemptLowerPriority",
  };
}

function overheadOf(object: ApiObject, { runtimeClassName = "" }: PodSpec, world: World): Partial<PodSpec> {
  if (runtimeClassName === "") return {};
  const found = world.store.get(runtimeClasses.storage, runtimeClassName);
  if (found === undefined) {
    const why = `pod rejected: RuntimeClass "${runtimeClassName}" not found`;
    throw forbidden(pods, object.metadata.name ?? "", why);
  }
  const overhead = objectAt(found, "overhead")["podFixed"] as PodSpec["overhead"];
  return overhead === undefined ? {} : { overhead };
}
