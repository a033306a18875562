import { messageOf } from "../../../ground/base/index.ts";
import {
  type IdentifiedPod,
  matchesNodeSelector,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type SelectableNode,
} from "../../../ground/model/index.ts";
import { StepError, UnresolvedVolumeError, type VolumeSource } from "../kinds/kind.ts";
import type { ContainerVolume } from "./volumes-of-containers.ts";

/** Port: claims and persistent volumes as the API server has them now; undefined when there is none. */
export interface Claims {
  claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined>;
  persistentVolume(name: string, signal: AbortSignal): Promise<PersistentVolume | undefined>;
  /** Undefined while the node object is unknown. */
  node(): SelectableNode | undefined;
}

const protection = "kubernetes.io/pvc-protection";
const groupAnnotation = "pv.beta.kubernetes.io/gid";

/** What a volume of a pod really is: itself, or the persistent volume behind its claim. */
export async function resolveSource(
  pod: IdentifiedPod,
  used: ContainerVolume,
  claims: Claims | undefined,
  signal: AbortSignal,
): Promise<VolumeSource> {
  const { volume } = used;
  const { persistentVolumeClaim, ephemeral } = volume;
  if (persistentVolumeClaim === undefined && ephemeral === undefined) return { type: "inline", volume };
  const { namespace } = pod.metadata;
  const name = persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${volume.name}`;
  try {
    if (claims === undefined) throw new Error("there is no API server to ask for it (standalone mode)");
    const claim = await boundClaim(claims, namespace, name, signal);
    if (ephemeral !== undefined) checkOwner(pod, claim, name);
    const persistent = await persistentVolumeOf(claims, claim, signal);
    checkMode(used, persistent);
    return { type: "claim", claim, persistent, readOnly: persistentVolumeClaim?.readOnly ?? false };
  } catch (error) {
    signal.throwIfAborted();
    throw new UnresolvedVolumeError(`error processing PVC ${namespace}/${name}: ${messageOf(error)}`, { cause: error });
  }
}

async function boundClaim(
  claims: Claims,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const claim = await fetched("PVC", () => claims.claim(namespace, name, signal));
  if (claim === undefined) {
    throw new Error(`failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`);
  }
  const { metadata, status, spec } = claim;
  if (metadata?.deletionTimestamp !== undefined && !(metadata.finalizers ?? []).includes(protection)) {
    throw new Error("PVC is being deleted");
  }
  if (status?.phase !== "Bound") throw new Error("PVC is not bound");
  if (!spec?.volumeName) throw new Error("PVC has empty pvc.Spec.VolumeName");
  return claim;
}

function checkOwner(pod: IdentifiedPod, { metadata }: PersistentVolumeClaim, name: string): void {
  const owner = (metadata?.ownerReferences ?? []).find(({ controller }) => controller === true);
  if (owner?.uid === pod.metadata.uid) return;
  const { namespace } = pod.metadata;
  throw new Error(
    `PVC ${namespace}/${name} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`,
  );
}

async function persistentVolumeOf(
  claims: Claims,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const name = claim.spec?.volumeName ?? "";
  const persistent = await fetched(`PV ${name}`, () => claims.persistentVolume(name, signal));
  if (persistent === undefined) {
    throw new Error(`failed to fetch PV ${name} from API server: persistentvolumes "${name}" not found`);
  }
  const reference = persistent.spec?.claimRef;
  if (reference === undefined) {
    throw new Error(
      `found PV object ${name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`,
    );
  }
  if (reference.uid !== claim.metadata?.uid) {
    throw new Error(
      `found PV object ${name} but its pv.Spec.ClaimRef.UID ${reference.uid} does not point to claim.UID ${claim.metadata?.uid}`,
    );
  }
  return persistent;
}

async function fetched<Result>(what: string, fetch: () => Promise<Result>): Promise<Result> {
  try {
    return await fetch();
  } catch (error) {
    throw new Error(`failed to fetch ${what} from API server: ${messageOf(error)}`, { cause: error });
  }
}

function checkMode({ volume, isMounted, isDevice }: ContainerVolume, { spec }: PersistentVolume): void {
  const isBlock = spec?.volumeMode === "Block";
  if (isBlock && isMounted) {
    throw new Error(`volume ${volume.name} has volumeMode Block, but is specified in volumeMounts`);
  }
  if (!isBlock && isDevice) {
    throw new Error(`volume ${volume.name} has volumeMode Filesystem, but is specified in volumeDevices`);
  }
}

/** Throws when the persistent volume can't be reached from this node. */
export function checkNodeAffinity({ spec }: PersistentVolume, node: ReturnType<Claims["node"]>): void {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms === undefined || node === undefined) return;
  if (matchesNodeSelector(terms, node)) return;
  throw new StepError("NodeAffinity check", "no matching NodeSelectorTerms");
}

/** The group that must be added to the pod's processes to use the volume. */
export function groupOf({ metadata }: PersistentVolume): number | undefined {
  const text = metadata?.annotations?.[groupAnnotation];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
