import { table } from "../../../ground/base/index.ts";
import type { Kind } from "../kinds/index.ts";

/** What a cluster has for these kinds and this server has not: without a word, people would wait for what never comes. */
const unmet: Readonly<Record<string, string>> = table({
  deployments: "no controller makes pods for it",
  replicasets: "no controller makes pods for it",
  statefulsets: "no controller makes pods for it",
  daemonsets: "no controller makes pods for it",
  jobs: "no controller makes pods for it",
  cronjobs: "no controller makes jobs for it",
  services: "no proxy leads its address to pods and no DNS knows its name; use the addresses of the pods",
  endpoints: "no proxy leads to it",
  endpointslices: "no proxy leads to it",
  poddisruptionbudgets: "no controller counts disruptions, so that it forbids none",
  persistentvolumeclaims: "no controller finds or makes a volume for it; name one in spec.volumeName",
  resourceclaims: "no scheduler allocates devices for it",
  resourcequotas: "nothing counts or limits what it names",
  limitranges: "nothing applies what it says",
});

const needPods = new Set(["deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"]);

/** What a client should know that stores an object of the kind; undefined when all is as in a cluster. */
export function unmetExpectation({ kind, plural }: Kind): string | undefined {
  const why = unmet[plural];
  if (why === undefined) return undefined;
  const instead = needPods.has(plural) ? "; create Pods instead" : "";
  return `this ${kind} is stored, but nothing comes of it here: ${why}${instead}`;
}
