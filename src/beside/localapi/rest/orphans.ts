import { storedKinds } from "../kinds/index.ts";
import { type ApiObject, withMetadata, withoutMetadata } from "../object.ts";
import type { World } from "./world.ts";

/** Takes the owner from all that belongs to it, so that it outlives it. */
export function orphanDependents(world: World, owner: ApiObject): void {
  for (const kind of storedKinds) {
    for (const object of world.store.list(kind.storage)) {
      const owners = object.metadata.ownerReferences ?? [];
      const left = owners.filter(({ uid }) => uid !== owner.metadata.uid);
      if (left.length === owners.length) continue;
      const changed =
        left.length === 0
          ? withoutMetadata(object, "ownerReferences")
          : withMetadata(object, { ownerReferences: left });
      world.store.put(kind.storage, changed);
    }
  }
}
