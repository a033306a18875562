import { table } from "../../../ground/base/index.ts";
import { isObject, listAt, stringAt } from "../json.ts";
import type { Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";

/** Who does something with objects of a kind on one machine, or what is missing for it. */
export type KindFate = { readonly actsOnIt: string } | { readonly missing: string };

const noPods = "no controller makes pods for it";

/** What becomes of each kind. Without a word, people would wait for what never comes. */
export const kindFates: Readonly<Record<string, KindFate>> = table({
  pods: { actsOnIt: "the binder gives it a node, the agent runs it" },
  nodes: { actsOnIt: "the agent; the binder reads it" },
  namespaces: { actsOnIt: "its accounts are made, its contents go with it" },
  serviceaccounts: { actsOnIt: "one is made for each namespace, tokens are given for it" },
  configmaps: { actsOnIt: "the agent mounts it" },
  secrets: { actsOnIt: "the agent mounts it" },
  events: { actsOnIt: "they are forgotten in time" },
  leases: { actsOnIt: "its writers" },
  certificatesigningrequests: { actsOnIt: "the signer" },
  runtimeclasses: { actsOnIt: "admission and the agent" },
  priorityclasses: { actsOnIt: "admission" },
  persistentvolumes: { actsOnIt: "it is bound to claims that name it, the agent mounts it" },
  csidrivers: { actsOnIt: "the agent" },
  csinodes: { actsOnIt: "the agent" },
  resourceslices: { actsOnIt: "the agent publishes them" },
  deployments: { missing: noPods },
  replicasets: { missing: noPods },
  statefulsets: { missing: noPods },
  daemonsets: { missing: noPods },
  jobs: { missing: noPods },
  cronjobs: { missing: "no controller makes jobs for it" },
  services: {
    missing: "no proxy leads its address to pods and no DNS knows its name; use the addresses of the pods",
  },
  endpoints: { missing: "no proxy leads to it" },
  endpointslices: { missing: "no proxy leads to it" },
  poddisruptionbudgets: { missing: "no controller counts disruptions, so that it forbids none" },
  persistentvolumeclaims: { missing: "no controller finds or makes a volume for it; name one in spec.volumeName" },
  storageclasses: { missing: "nothing makes volumes of it" },
  volumeattachments: { missing: "no controller attaches volumes" },
  resourceclaims: { missing: "no scheduler allocates devices for it" },
  resourceclaimtemplates: { missing: "no controller makes claims from it; create a ResourceClaim" },
  deviceclasses: { missing: "no scheduler allocates devices by it" },
  resourcequotas: { missing: "nothing counts or limits what it names" },
  limitranges: { missing: "nothing applies what it says" },
});

const needPods = new Set(["deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"]);

/** What a client should know that stores this object; nothing when all is as in a cluster. */
export function unmetExpectations({ kind, plural }: Kind, object: ApiObject): readonly string[] {
  if (plural === "pods") return unmetByPod(object);
  // The one that it names becomes its own.
  if (plural === "persistentvolumeclaims" && stringAt(object, "spec", "volumeName") !== "") return [];
  const fate = kindFates[plural];
  if (fate === undefined || "actsOnIt" in fate) return [];
  const instead = needPods.has(plural) ? "; create Pods instead" : "";
  return [`this ${kind} is stored, but nothing comes of it here: ${fate.missing}${instead}`];
}

/** Longer names of others are cut: a header holds a few kilobytes. */
const longestName = 100;

/** A pod is run, unless it waits for somebody who is not here. */
function unmetByPod(pod: ApiObject): readonly string[] {
  const scheduler = stringAt(pod, "spec", "schedulerName");
  const isForeign = scheduler !== "" && scheduler !== "default-scheduler" && stringAt(pod, "spec", "nodeName") === "";
  const templates = listAt(pod, "spec", "resourceClaims").filter(
    (claim) => isObject(claim) && stringAt(claim, "resourceClaimTemplateName") !== "",
  );
  const hasOwnClaims = listAt(pod, "spec", "volumes").some(
    (volume) => isObject(volume) && isObject(volume["ephemeral"]),
  );
  return [
    ...(hasOwnClaims
      ? [
          "this Pod waits for claims that no controller makes here: use emptyDir, or a claim that names a volume, not ephemeral",
        ]
      : []),
    ...(isForeign
      ? [
          `unless a scheduler ${JSON.stringify(scheduler.slice(0, longestName))} of your own runs, nobody gives this Pod a node: leave spec.schedulerName out, or name a node in spec.nodeName`,
        ]
      : []),
    ...(templates.length > 0
      ? ["this Pod waits for claims that no controller makes here: name ResourceClaims, not templates"]
      : []),
  ];
}
