import { type Container, containersOf, type IdentifiedPod } from "../../../ground/model/index.ts";

/** The kernel takes no longer path, and so nobody can mount anything there. */
const longestPath = 4096;

/** A directory that the volume, or something below it, is mounted at. */
interface Place {
  readonly below: Map<string, Place>;
  isOwn: boolean;
}

/**
 * Paths inside the volume at which containers have other volumes mounted, relative to it. A pod may have tens of
 * thousands of mounts of the one and of the others, so they are not compared one by one.
 */
export function nestedMountPoints(pod: IdentifiedPod, volume: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { container } of containersOf(pod)) addNested(container, volume, found);
  return found;
}

function addNested({ volumeMounts = [] }: Container, volume: string, found: Set<string>): void {
  const root: Place = { below: new Map(), isOwn: false };
  for (const { name, mountPath, subPath, subPathExpr } of volumeMounts) {
    if (name !== volume || subPath || subPathExpr || mountPath.length > longestPath) continue;
    let place = root;
    for (const element of elementsOf(mountPath)) place = enter(place, element);
    place.isOwn = true;
  }
  if (root.below.size === 0 && !root.isOwn) return;
  for (const { name, mountPath } of volumeMounts) {
    if (name === volume || mountPath.length > longestPath) continue;
    const elements = elementsOf(mountPath);
    let place: Place | undefined = root;
    for (const [depth, element] of elements.entries()) {
      if (place?.isOwn === true && isInside(elements, depth)) found.add(elements.slice(depth).join("/"));
      place = place?.below.get(element);
      if (place === undefined) break;
    }
  }
}

function enter(place: Place, element: string): Place {
  let next = place.below.get(element);
  if (next === undefined) {
    next = { below: new Map(), isOwn: false };
    place.below.set(element, next);
  }
  return next;
}

/** Whether the path from there on stays below where it begins, and takes no name that the writer of content uses. */
function isInside(elements: readonly string[], from: number): boolean {
  return !elements.includes("..", from) && elements[from]?.startsWith("..") !== true;
}

function elementsOf(path: string): readonly string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}
