import {
  containersOf,
  type IdentifiedPod,
  isMirrorPod,
  isStaticPod,
  ownGraceSeconds,
} from "../../ground/model/index.ts";

/** What emptying this node would do, as far as the node can tell; fields are only ever added. */
export interface DrainDryRun {
  readonly apiVersion: "nodelet.dev/v1";
  readonly kind: "DrainDryRun";
  /** Those that are gone first come first. */
  readonly goes: readonly DrainedPod[];
  readonly stays: readonly { readonly pod: string; readonly why: string }[];
  /** All go at once: as long as the slowest takes. */
  readonly expectedSeconds: number;
  /** What a node can't know. */
  readonly unknown: readonly string[];
}

export interface DrainedPod {
  readonly pod: string;
  readonly graceSeconds: number;
  /** Containers whose hooks run first, within the grace. */
  readonly hooks: readonly string[];
  /** Claims whose volumes have to be detached. */
  readonly claims: readonly string[];
  /** What is lost with it. */
  readonly loses: readonly string[];
  readonly comesBack: string;
  readonly isOverTime: boolean;
}

export function drainDryRun(pods: readonly IdentifiedPod[], timeoutSeconds: number | undefined): DrainDryRun {
  const goes = pods.filter((pod) => whyItStays(pod) === undefined).map((pod) => drained(pod, timeoutSeconds));
  return {
    apiVersion: "nodelet.dev/v1",
    kind: "DrainDryRun",
    goes: goes.sort((a, b) => a.graceSeconds - b.graceSeconds),
    stays: pods.flatMap((pod) => {
      const why = whyItStays(pod);
      return why === undefined ? [] : [{ pod: nameOf(pod), why }];
    }),
    expectedSeconds: Math.max(0, ...goes.map(({ graceSeconds }) => graceSeconds)),
    unknown: [
      "PodDisruptionBudgets: a node may not read them; `kubectl get poddisruptionbudgets -A` shows what may block an eviction",
    ],
  };
}

function whyItStays(pod: IdentifiedPod): string | undefined {
  if (isStaticPod(pod) || isMirrorPod(pod)) return "it comes from a file of this node";
  const owner = controllerOf(pod);
  return owner?.kind === "DaemonSet" ? `DaemonSet ${owner.name} would bring it back at once` : undefined;
}

function drained(pod: IdentifiedPod, timeoutSeconds: number | undefined): DrainedPod {
  const graceSeconds = ownGraceSeconds(pod);
  const owner = controllerOf(pod);
  const volumes = pod.spec.volumes ?? [];
  return {
    pod: nameOf(pod),
    graceSeconds,
    hooks: containersOf(pod).flatMap(({ container }) =>
      container.lifecycle?.preStop === undefined ? [] : [container.name],
    ),
    claims: volumes.flatMap(({ persistentVolumeClaim: claim }) => (claim === undefined ? [] : [claim.claimName])),
    loses: volumes.flatMap(({ name, emptyDir }) => (emptyDir === undefined ? [] : [`volume ${name}`])),
    comesBack: owner === undefined ? "never: nothing controls it" : `elsewhere, by ${owner.kind} ${owner.name}`,
    isOverTime: timeoutSeconds !== undefined && graceSeconds > timeoutSeconds,
  };
}

function controllerOf({ metadata }: IdentifiedPod) {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

function nameOf({ metadata: { namespace, name } }: IdentifiedPod): string {
  return `${namespace}/${name}`;
}
