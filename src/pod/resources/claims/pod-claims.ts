import {
  type DraResourceClaim,
  type IdentifiedPod,
  type PodResourceClaim,
  uidOf,
} from "../../../ground/model/index.ts";

export interface PodClaimSettings {
  /** Whether extended resources of a pod may come from a claim that the scheduler made for them. */
  readonly extendedResources: boolean;
}

/** A claim that a pod names, and how it came to it. */
export interface NamedClaim {
  /** As containers of the pod call it; undefined: the one for its extended resources. */
  readonly entry: string | undefined;
  /** Of the ResourceClaim. */
  readonly name: string;
  /** It was made for this pod, and no other may have it. */
  readonly mustOwn: boolean;
}

/** What a pod waits for is not there yet; the text is what users know. */
export class ClaimNotReady extends Error {
  override readonly name = "ClaimNotReady";
}

/** The claims of a pod in their order. Throws ClaimNotReady while one is yet to be made. */
export function claimsNamedBy(pod: IdentifiedPod, settings: PodClaimSettings): readonly NamedClaim[] {
  const made = new Map((pod.status?.resourceClaimStatuses ?? []).map((status) => [status.name, status]));
  const named = (pod.spec.resourceClaims ?? []).flatMap((claim) => {
    const name = nameOf(pod, claim, made);
    if (name === undefined) return [];
    return [{ entry: claim.name, name, mustOwn: claim.resourceClaimName === undefined }];
  });
  const extended = settings.extendedResources ? pod.status?.extendedResourceClaimStatus : undefined;
  if (extended === undefined) return named;
  return [...named, { entry: undefined, name: extended.resourceClaimName, mustOwn: false }];
}

/** Undefined: the cluster has decided that the pod needs none. */
function nameOf(
  pod: IdentifiedPod,
  claim: PodResourceClaim,
  made: ReadonlyMap<string, { readonly resourceClaimName?: string | undefined }>,
): string | undefined {
  if (claim.resourceClaimName !== undefined) return claim.resourceClaimName;
  const whose = `pod "${podName(pod)}"`;
  if (claim.resourceClaimTemplateName === undefined) {
    throw new ClaimNotReady(`${whose}, spec.resourceClaim "${claim.name}": none of the supported fields are set`);
  }
  const status = made.get(claim.name);
  if (status === undefined) throw new ClaimNotReady(`${whose}: ResourceClaim not created yet`);
  return status.resourceClaimName ?? undefined;
}

function podName({ metadata }: IdentifiedPod): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** The drivers that have a part in the claim. Throws ClaimNotReady unless it is allocated, and for this pod. */
export function driversOfClaim(
  pod: IdentifiedPod,
  { name, mustOwn }: NamedClaim,
  claim: DraResourceClaim,
): readonly string[] {
  const uid = uidOf(pod);
  const { metadata, status } = claim;
  if (mustOwn && !(metadata?.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid)) {
    const whose = `ResourceClaim ${metadata?.namespace}/${name}`;
    throw new ClaimNotReady(`${whose} was not created for pod ${podName(pod)} (pod is not owner)`);
  }
  // Said first: where nobody allocates claims, nobody reserves them either, and this is what is amiss.
  if (status?.allocation === undefined) throw new ClaimNotReady(`ResourceClaim ${name}: not allocated`);
  if (!(status.reservedFor ?? []).some((consumer) => consumer.uid === uid)) {
    const claimed = `ResourceClaim ${name} (${metadata?.uid})`;
    throw new ClaimNotReady(`pod ${pod.metadata.name} (${uid}) is not allowed to use ${claimed}`);
  }
  return [...new Set((status.allocation.devices?.results ?? []).map(({ driver }) => driver))].sort();
}
