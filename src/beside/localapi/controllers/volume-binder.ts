import { objectAt, stringAt } from "../json.ts";
import { persistentVolumeClaims, persistentVolumes } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import type { World } from "../rest/world.ts";

/**
 * Binds claims to the volumes that they name, or that name them, and lets a volume go with its claim. It chooses and
 * makes none: whoever stores a claim without a volume is told so (`rest/kind-fates.ts`).
 */
export function runVolumeBinder(world: World): () => void {
  const stops = [
    world.store.subscribe(persistentVolumeClaims.storage, ({ type, object }) => {
      if (type === "DELETED") release(world, object);
      else bind(world, object);
    }),
    world.store.subscribe(persistentVolumes.storage, ({ type, object }) => {
      if (type !== "DELETED") bindTo(world, object);
    }),
  ];
  for (const claim of world.store.list(persistentVolumeClaims.storage)) bindToNamed(world, claim);
  for (const volume of world.store.list(persistentVolumes.storage)) bindKept(world, volume);
  return () => {
    for (const stop of stops) stop();
  };
}

/** A volume came or changed: whoever names it, and whomever it names. */
function bindTo(world: World, volume: ApiObject): void {
  const { name } = volume.metadata;
  for (const claim of world.store.list(persistentVolumeClaims.storage)) {
    if (stringAt(claim, "spec", "volumeName") === name) bind(world, claim);
  }
  bindKept(world, volume);
}

/** No claim is held against every volume: clients may have thousands of both. */
function bindToNamed(world: World, claim: ApiObject): void {
  if (stringAt(claim, "spec", "volumeName") !== "") bind(world, claim);
}

function bindKept(world: World, volume: ApiObject): void {
  const [namespace, name] = ["namespace", "name"].map((field) => stringAt(volume, "spec", "claimRef", field));
  if (!namespace || !name) return;
  const claim = world.store.get(persistentVolumeClaims.storage, keyOf(namespace, name));
  if (claim !== undefined) bind(world, claim);
}

function bind(world: World, seen: ApiObject): void {
  const { namespace = "", name = "" } = seen.metadata;
  const claim = world.store.get(persistentVolumeClaims.storage, keyOf(namespace, name));
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return;
  if (stringAt(claim, "status", "phase") === "Bound") return;
  const volume = volumeFor(world, claim);
  if (volume === undefined || volume.metadata.deletionTimestamp !== undefined) return;
  const claimRef = { kind: "PersistentVolumeClaim", apiVersion: "v1", namespace, name, uid: claim.metadata.uid };
  world.store.put(persistentVolumes.storage, {
    ...volume,
    spec: { ...objectAt(volume, "spec"), claimRef },
    status: { ...objectAt(volume, "status"), phase: "Bound" },
  });
  const { accessModes, capacity } = objectAt(volume, "spec");
  world.store.put(persistentVolumeClaims.storage, {
    ...claim,
    spec: { ...objectAt(claim, "spec"), volumeName: volume.metadata.name },
    status: { ...objectAt(claim, "status"), phase: "Bound", accessModes, capacity },
  });
}

/** The volume that the claim names if that is free, or one that is kept for it. */
function volumeFor(world: World, claim: ApiObject): ApiObject | undefined {
  const named = stringAt(claim, "spec", "volumeName");
  if (named !== "") {
    const volume = world.store.get(persistentVolumes.storage, named);
    const isFree =
      volume !== undefined && (stringAt(volume, "spec", "claimRef", "name") === "" || isKept(volume, claim));
    return isFree ? volume : undefined;
  }
  return world.store.list(persistentVolumes.storage).find((volume) => isKept(volume, claim));
}

function isKept(volume: ApiObject, { metadata }: ApiObject): boolean {
  const uid = stringAt(volume, "spec", "claimRef", "uid");
  return (
    stringAt(volume, "spec", "claimRef", "namespace") === metadata.namespace &&
    stringAt(volume, "spec", "claimRef", "name") === metadata.name &&
    (uid === "" || uid === metadata.uid)
  );
}

/** What the claim's pods have written stays, until a person says what shall become of it. */
function release(world: World, claim: ApiObject): void {
  for (const volume of world.store.list(persistentVolumes.storage)) {
    if (stringAt(volume, "spec", "claimRef", "uid") !== claim.metadata.uid) continue;
    if (stringAt(volume, "status", "phase") === "Released") continue;
    const status = { ...objectAt(volume, "status"), phase: "Released" };
    world.store.put(persistentVolumes.storage, { ...volume, status });
  }
}
