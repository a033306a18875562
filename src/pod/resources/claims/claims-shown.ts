import type { ContainerClaim, GrantedDevice } from "./claim-grants.ts";

interface ClaimShown {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly GrantedDevice[];
}

/**
 * What those see of a container's claims who ask which devices it has: all devices of each, whatever part of it the
 * container asks for. So it is with the kubelet.
 */
export function claimsShown(claims: readonly ContainerClaim[]): readonly ClaimShown[] {
  return [...new Set(claims.map(({ claim }) => claim))].map(({ name, namespace, drivers }) => ({
    name,
    namespace,
    devices: [...drivers].flatMap(([driver, own]) => own.map((device) => ({ driver, ...device }))),
  }));
}
