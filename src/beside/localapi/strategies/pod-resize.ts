import {
  defaultPod,
  type IdentifiedPod,
  jsonEqual,
  type Pod,
  ProblemList,
  qosClassOf,
} from "../../../ground/model/index.ts";
import { isObject, listAt, objectAt, stringAt } from "../json.ts";
import { nodes, pods } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { World } from "../rest/world.ts";
import { invalid } from "../status-error.ts";

/**
 * The old pod with the resources and resize policies of the new one's containers. What v1.34 refuses (resources of the
 * pod as a whole, of init containers that end) is taken where the pod's node declares that it can do it, as later
 * versions do.
 */
export function resizedPod(object: ApiObject, old: ApiObject, world: World): ApiObject {
  const declared = declaredBy(stringAt(old, "spec", "nodeName"), world);
  const problems = new ProblemList();
  const spec = objectAt(old, "spec");
  const [before, after] = [spec["resources"], objectAt(object, "spec")["resources"]];
  const ofPods = declared.has("InPlacePodLevelResourcesVerticalScaling");
  if (!ofPods && (setsAnything(before) || setsAnything(after))) {
    problems.forbidden("", "pods with pod-level resources cannot be resized");
  }
  if (before !== undefined && after === undefined) {
    problems.forbidden("spec.resources", "pod-level resources cannot be removed");
  }
  const resized = asObject(
    defaultPod(
      asPod({
        ...old,
        spec: {
          ...spec,
          ...(after === undefined ? {} : { resources: after }),
          containers: resizedContainers(object, old, "containers"),
          ...(spec["initContainers"] !== undefined && {
            initContainers: resizedContainers(object, old, "initContainers"),
          }),
        },
      }),
    ),
  );
  if (!declared.has("InPlacePodVerticalScalingInitContainers") && changesPlainInit(resized, old)) {
    problems.forbidden("spec", "resources for non-sidecar init containers are immutable");
  }
  const qosClass = stringAt(old, "status", "qosClass");
  if (qosClassOf({ ...resized, status: {} } as unknown as IdentifiedPod) !== qosClass) {
    problems.invalid("spec", qosClass, "Pod QOS Class may not change as a result of resizing");
  }
  if (problems.problems.length > 0) throw invalid(pods, old.metadata.name ?? "", problems.problems);
  return resized;
}

function declaredBy(node: string, world: World): ReadonlySet<string> {
  const found = node === "" ? undefined : world.store.get(nodes.storage, node);
  return new Set(found === undefined ? [] : listAt(found, "status", "declaredFeatures").map(String));
}

function setsAnything(resources: unknown): boolean {
  return ["requests", "limits"].some((list) => Object.keys(objectAt(resources, list)).length > 0);
}

function resizedContainers(object: ApiObject, old: ApiObject, field: string): readonly unknown[] {
  return listAt(old, "spec", field).map((container) => {
    const name = stringAt(container, "name");
    const wanted = listAt(object, "spec", field).find((other) => stringAt(other, "name") === name);
    if (!isObject(container) || !isObject(wanted)) return container;
    return { ...container, resources: wanted["resources"], resizePolicy: wanted["resizePolicy"] };
  });
}

function changesPlainInit(resized: ApiObject, old: ApiObject): boolean {
  const after = listAt(resized, "spec", "initContainers");
  return listAt(old, "spec", "initContainers").some((container, index) => {
    const isPlain = stringAt(container, "restartPolicy") !== "Always";
    return isPlain && !jsonEqual(objectAt(container, "resources"), objectAt(after[index], "resources"));
  });
}

const asPod = (object: ApiObject): Pod => object as unknown as Pod;
const asObject = (pod: Pod): ApiObject => pod as unknown as ApiObject;
