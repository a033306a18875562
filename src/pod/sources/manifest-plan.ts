import {
  type ContainerKind,
  containersOf,
  formatQuantity,
  fullName,
  type IdentifiedPod,
  isCriticalPod,
  isError,
  isStaticPod,
  type Problem,
  qosClassOf,
  type ResourceAmounts,
  uidOf,
} from "../../ground/model/index.ts";
import type { ForeseenImageUse } from "../images/index.ts";
import {
  type AdmissionVerdict,
  clashingHostPorts,
  type ForeseenDecision,
  isLacking,
  type Objection,
  type ResourceSum,
  resourceSums,
  rivalsOf,
} from "../registry/index.ts";
import type { ForeseenCgroup, PlacementTrial } from "../resources/index.ts";
import { type CpuAndMemoryPlacement, containerResources, type NodeContext } from "../runtime/index.ts";
import type { ForeseenVolume } from "../volumes/index.ts";
import { type FilledField, filledFields } from "./filled-fields.ts";
import type { ForeseenManifest } from "./foreseen-manifest.ts";

/** What would happen with a pod manifest on this node now, for people and programs; fields are only ever added. */
export interface ManifestPlan {
  readonly apiVersion: "nodelet.dev/v1";
  readonly kind: "ManifestPlan";
  /** When it was looked at, and when the runtime last said what runs. */
  readonly at: number;
  readonly runtimeSeenAt: number | undefined;
  /** The file that it is judged as; `isRead`: this node reads manifests from there. */
  readonly file: { readonly path: string; readonly isRead: boolean };
  readonly outcome: "admitted" | "refused" | "waits" | "unchanged" | "invalid" | "no pod";
  /** What there is too much of to be shown, and how much of it is not. */
  readonly leftOut: Readonly<Record<string, number>>;
  readonly problems: readonly Problem[];
  /** Undefined: it is no pod, or none that could be used. */
  readonly pod: PlannedPod | undefined;
}

export interface PlannedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly qosClass: string;
  readonly priority: number;
  readonly isCritical: boolean;
  readonly filledIn: readonly FilledField[];
  /** What is here under this name: nothing, this very pod, or another version, which would end first. */
  readonly presence: "new" | "the same" | "replaces";
  /** Static pods of this name, as uids. */
  readonly namesakes: readonly string[];
  readonly verdict: VerdictShown;
  readonly objections: readonly ObjectionShown[];
  /** False: without an API server nobody is refused for want of these. */
  readonly areSumsBinding: boolean;
  readonly sums: readonly SumShown[];
  readonly hostPorts: readonly {
    readonly port: number;
    readonly protocol: string;
    readonly ip: string;
    readonly holder: string;
  }[];
  /** Undefined: pods have none of their own here, or the runtime has not said yet how they are named. */
  readonly cgroup: ForeseenCgroup | undefined;
  readonly containers: readonly PlannedContainer[];
  readonly volumes: readonly (ForeseenVolume & { readonly mountedAt: readonly string[] })[];
  readonly images: readonly ForeseenImageUse[];
}

/** In the words that the pod's status would have. */
export type VerdictShown =
  | { readonly type: "admitted"; readonly preempts: readonly string[]; readonly forWantOf: string | undefined }
  | { readonly type: "rejected"; readonly reason: string; readonly message: string }
  | { readonly type: "waits"; readonly waitsFor: string };

export interface ObjectionShown {
  readonly handler: string;
  /** Undefined: it can't tell yet. */
  readonly reason: string | undefined;
  readonly message: string;
}

/** Amounts as quantities. */
export interface SumShown {
  readonly resource: string;
  readonly has: string;
  readonly promised: string;
  readonly asks: string;
  readonly isEnough: boolean;
}

/** What the runtime would be told of a container's resources. */
export interface PlannedContainer {
  readonly name: string;
  readonly kind: ContainerKind;
  readonly cpuShares: number;
  /** 0: no limit. */
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  readonly memoryLimitBytes: number;
  readonly oomScoreAdj: number;
  /** In the kernel's list form; empty: any. */
  readonly cpus: string;
  readonly memoryNodes: string;
  readonly hugePages: Readonly<Record<string, number>>;
  readonly unified: Readonly<Record<string, string>>;
}

/** Port: what the plan is made from, all of it as the agent itself does it, with effects left out. */
export interface ManifestPlanPorts {
  readonly now: () => number;
  readonly runtimeSeenAt: () => number | undefined;
  /** This node reads manifests from files. */
  readonly readsFiles: boolean;
  readonly foreseeFile: (name: string, manifest: Uint8Array) => Promise<ForeseenManifest>;
  /** The pod as the registry would be told of it. */
  readonly announced: (pod: IdentifiedPod) => IdentifiedPod;
  readonly wantedPods: () => readonly IdentifiedPod[];
  readonly decide: (pod: IdentifiedPod, replaced: IdentifiedPod | undefined) => TriedDecision;
  /** Undefined: this node counts nothing. */
  readonly areSumsBinding: boolean;
  readonly allocatable: () => ResourceAmounts;
  readonly cgroupOf: (pod: IdentifiedPod, exclusiveCpus: boolean) => ForeseenCgroup | undefined;
  readonly context: NodeContext;
  readonly volumes: (pod: IdentifiedPod, most: number, signal: AbortSignal) => Promise<readonly ForeseenVolume[]>;
  readonly images: (pod: IdentifiedPod, most: number, signal: AbortSignal) => Promise<readonly ForeseenImageUse[]>;
}

/** A decision, and where the pod would be placed by it. */
export interface TriedDecision {
  readonly decision: ForeseenDecision;
  readonly placement: Pick<PlacementTrial, "of" | "hasExclusiveCpus">;
}

/** Nobody reads more, and a hostile manifest has a million of each. */
const mostShown = 200;

/** Plans a manifest as if it were put among the manifests of this node under that name. Keeps, pulls and tells nothing. */
export async function planManifest(
  name: string,
  manifest: Uint8Array,
  ports: ManifestPlanPorts,
  signal: AbortSignal,
): Promise<ManifestPlan> {
  const foreseen = await ports.foreseeFile(name, manifest);
  const shown = new Shown();
  const pod = foreseen.pod && (await planPod(foreseen.pod, foreseen, ports, shown, signal));
  const isInvalid = foreseen.problems.some(isError);
  return {
    apiVersion: "nodelet.dev/v1",
    kind: "ManifestPlan",
    at: ports.now(),
    runtimeSeenAt: ports.runtimeSeenAt(),
    file: { path: foreseen.path, isRead: ports.readsFiles },
    outcome: pod === undefined ? (isInvalid ? "invalid" : "no pod") : outcomeOf(pod),
    problems: shown.few("problems", foreseen.problems),
    pod,
    leftOut: Object.fromEntries(shown.leftOut),
  };
}

async function planPod(
  identified: IdentifiedPod,
  { written = {}, replaces }: ForeseenManifest,
  ports: ManifestPlanPorts,
  shown: Shown,
  signal: AbortSignal,
): Promise<PlannedPod> {
  const pod = ports.announced(identified);
  const isSame = replaces !== undefined && uidOf(replaces) === uidOf(pod);
  const { decision, placement } = ports.decide(pod, isSame ? undefined : replaces);
  const { namespace, name, uid } = pod.metadata;
  return {
    namespace,
    name,
    uid,
    qosClass: qosClassOf(pod),
    priority: pod.spec.priority ?? 0,
    isCritical: isCriticalPod(pod),
    filledIn: shown.few("filled in", filledFields(written, pod)),
    presence: isSame ? "the same" : replaces === undefined ? "new" : "replaces",
    namesakes: ports
      .wantedPods()
      .filter((other) => isStaticPod(other) && fullName(other) === fullName(pod))
      .map((other) => other.metadata.uid),
    verdict: verdictShown(decision),
    objections: decision.type === "judged" ? decision.objections.map(objectionShown) : [],
    areSumsBinding: ports.areSumsBinding,
    sums: shown.few("sums", resourceSums(pod, rivalsOf(pod, decision.others), ports.allocatable()).map(sumShown)),
    hostPorts: shown.few(
      "host ports",
      clashingHostPorts(pod, decision.others).map(({ holder, ...port }) => ({ ...port, holder: nameOf(holder) })),
    ),
    cgroup: ports.cgroupOf(pod, placement.hasExclusiveCpus(uidOf(pod))),
    containers: shown
      .few("containers", containersOf(pod))
      .map(({ kind, container }) =>
        plannedContainer(pod, kind, container, ports.context, placement.of(uidOf(pod), container.name)),
      ),
    volumes: await volumesShown(pod, ports, shown, signal),
    images: await ports.images(pod, mostShown, signal),
  };
}

function outcomeOf({ presence, verdict }: PlannedPod): ManifestPlan["outcome"] {
  if (verdict.type === "rejected") return "refused";
  if (presence === "the same") return "unchanged";
  return verdict.type;
}

function verdictShown(decision: ForeseenDecision): VerdictShown {
  switch (decision.type) {
    case "judged":
      return ofVerdict(decision.verdict);
    case "wait":
      return { type: "waits", waitsFor: decision.waitsFor };
    case "take":
    case "take over":
      return { type: "admitted", preempts: [], forWantOf: undefined };
    case "refused before": {
      const message = "this very pod was refused before; it is judged again after its file was removed";
      return { type: "rejected", reason: "RefusedBefore", message };
    }
  }
}

function ofVerdict(verdict: AdmissionVerdict): VerdictShown {
  switch (verdict.type) {
    case "admitted":
      return {
        type: "admitted",
        preempts: verdict.preempts?.victims.map(nameOf) ?? [],
        forWantOf: verdict.preempts?.resource,
      };
    case "rejected":
      return { type: "rejected", reason: verdict.reason, message: verdict.message };
    case "undecided":
      return { type: "waits", waitsFor: verdict.waitsFor };
  }
}

function objectionShown({ handler, verdict }: Objection): ObjectionShown {
  return verdict.type === "rejected"
    ? { handler, reason: verdict.reason, message: verdict.message }
    : { handler, reason: undefined, message: `waits for ${verdict.waitsFor}` };
}

function sumShown(sum: ResourceSum): SumShown {
  const { resource, capacity, used, requested } = sum;
  const isBytes = resource === "memory" || resource === "ephemeral-storage";
  const text = (amount: bigint): string =>
    resource === "pods" ? String(amount) : formatQuantity(amount, isBytes ? "binary" : "decimal");
  return { resource, has: text(capacity), promised: text(used), asks: text(requested), isEnough: !isLacking(sum) };
}

function plannedContainer(
  pod: IdentifiedPod,
  kind: ContainerKind,
  container: Parameters<typeof containerResources>[1],
  context: NodeContext,
  placement: CpuAndMemoryPlacement,
): PlannedContainer {
  const told = containerResources(pod, container, context, placement);
  return {
    name: container.name,
    kind,
    cpuShares: Number(told.cpuShares),
    cpuQuotaUs: Number(told.cpuQuota),
    cpuPeriodUs: Number(told.cpuPeriod),
    memoryLimitBytes: Number(told.memoryLimitInBytes),
    oomScoreAdj: Number(told.oomScoreAdj),
    cpus: told.cpusetCpus,
    memoryNodes: told.cpusetMems,
    hugePages: Object.fromEntries(told.hugepageLimits.map(({ pageSize, limit }) => [pageSize, Number(limit)])),
    unified: { ...told.unified },
  };
}

async function volumesShown(
  pod: IdentifiedPod,
  ports: ManifestPlanPorts,
  shown: Shown,
  signal: AbortSignal,
): Promise<PlannedPod["volumes"]> {
  const mountedAt = new Map<string, string[]>();
  for (const { container } of containersOf(pod)) {
    for (const { name, mountPath, readOnly } of container.volumeMounts ?? []) {
      const places = mountedAt.get(name) ?? [];
      mountedAt.set(name, places);
      places.push(`${container.name}:${mountPath}${readOnly === true ? " (read-only)" : ""}`);
    }
  }
  const volumes = await ports.volumes(pod, mostShown, signal);
  return volumes.map((volume) => ({ ...volume, mountedAt: shown.few("mounts", mountedAt.get(volume.name) ?? []) }));
}

function nameOf({ metadata: { namespace, name } }: IdentifiedPod): string {
  return `${namespace}/${name}`;
}

/** Takes a few of many, and remembers of what there is more. */
class Shown {
  readonly leftOut = new Map<string, number>();

  few<Item>(what: string, items: Iterable<Item>): readonly Item[] {
    const few: Item[] = [];
    let more = 0;
    for (const item of items) {
      if (few.length < mostShown) few.push(item);
      else more++;
    }
    if (more > 0) this.leftOut.set(what, (this.leftOut.get(what) ?? 0) + more);
    return few;
  }
}
