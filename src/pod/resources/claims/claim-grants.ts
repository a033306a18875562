import type { PreparedDevice } from "../../../connections/plugins/index.ts";
import { type Container, type IdentifiedPod, isExtended, uidOf } from "../../../ground/model/index.ts";
import { type ClaimRecord, type ClaimState, claimKey } from "./claim-state.ts";
import { claimsNamedBy, type PodClaimSettings } from "./pod-claims.ts";

/** A device that a container may use, and the claim it belongs to. */
export interface GrantedDevice extends PreparedDevice {
  readonly driver: string;
}

/** What a container has of one claim by one of its entries. */
export interface ContainerClaim {
  readonly claim: ClaimRecord;
  /** As users name it: `entry` or `entry/request`; the extended resource where the claim stands for one. */
  readonly label: string;
  readonly devices: readonly GrantedDevice[];
}

/** Names of CDI devices for a container that is about to be made. Throws where its claims are not known. */
export function cdiDevicesFor(
  state: ClaimState,
  pod: IdentifiedPod,
  container: Container,
  settings: PodClaimSettings,
): readonly string[] {
  const own = claimsOfContainer(state, pod, container, settings);
  return [...new Set(own.flatMap(({ devices }) => devices.flatMap(({ cdiIds }) => cdiIds)))];
}

/** What the container has of the pod's claims, in their order. Throws where one is not known. */
export function claimsOfContainer(
  state: ClaimState,
  pod: IdentifiedPod,
  container: Container,
  settings: PodClaimSettings,
): readonly ContainerClaim[] {
  const wanted = wantedBy(pod, container);
  if (wanted.length === 0) return [];
  const byEntry = new Map<string | undefined, WantedPart[]>(wanted.map(({ entry }) => [entry, []]));
  for (const part of wanted) byEntry.get(part.entry)?.push(part);
  return claimsNamedBy(pod, settings).flatMap(({ entry, name }) => {
    const asked = byEntry.get(entry);
    if (asked === undefined) return [];
    const claim = state.get(claimKey({ namespace: pod.metadata.namespace, name }));
    if (claim?.pods.has(uidOf(pod)) !== true) {
      throw new Error(`internal error: unable to get claim info for ResourceClaim ${name}`);
    }
    return asked.map(({ request, label }) => ({ claim, label, devices: devicesFor(claim, request) }));
  });
}

interface WantedPart {
  readonly entry: string | undefined;
  /** Empty: all of it. */
  readonly request: string;
  readonly label: string;
}

function wantedBy(pod: IdentifiedPod, { name, resources }: Container): readonly WantedPart[] {
  const entries = (resources?.claims ?? []).map(({ name: entry, request = "" }) => ({
    entry,
    request,
    label: request === "" ? `claim:${entry}` : `claim:${entry}/${request}`,
  }));
  const mappings = pod.status?.extendedResourceClaimStatus?.requestMappings ?? [];
  const extended = Object.entries(resources?.requests ?? {}).flatMap(([resource, amount]) => {
    if (!isExtended(resource) || Number(amount) === 0) return [];
    const mapping = mappings.find((each) => each.containerName === name && each.resourceName === resource);
    return mapping?.requestName ? [{ entry: undefined, request: mapping.requestName, label: resource }] : [];
  });
  return [...entries, ...extended];
}

function devicesFor({ drivers }: ClaimRecord, request: string): readonly GrantedDevice[] {
  return [...drivers].flatMap(([driver, devices]) =>
    devices
      .filter(({ requests }) => request === "" || requests.length === 0 || requests.includes(request))
      .map((device) => ({ ...device, driver })),
  );
}
