import {
  amountsOf,
  type Container,
  containersOf,
  type IdentifiedPod,
  isExtended,
  wholeUnits,
} from "../../../ground/model/index.ts";

/** Extended resources that a container asks for, by name; plugins offer some of them. */
export function wantedDevices(container: Container): ReadonlyMap<string, number> {
  const wanted = new Map<string, number>();
  for (const [name, amount] of amountsOf(container.resources?.limits)) {
    const count = Number(wholeUnits(amount));
    if (count > 0 && isExtended(name)) wanted.set(name, count);
  }
  return wanted;
}

/** Containers in the order in which they get devices: those that begin first may leave them to others. */
export function containersInTurn(pod: IdentifiedPod): readonly Container[] {
  return containersOf(pod).flatMap(({ kind, container }) => (kind === "ephemeral" ? [] : [container]));
}
