import {
  configMirrorAnnotation,
  configSeenAnnotation,
  configSourceAnnotation,
  fullName,
  type IdentifiedPod,
  jsonEqual,
  type PodSource,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";

/** Annotations that agents write for themselves: they say nothing about what the user wants. */
const localAnnotations = [configSourceAnnotation, configMirrorAnnotation, configSeenAnnotation] as const;

/** What is remembered of one pod between two SETs. */
export interface StoredPod {
  /** As the consumer knows it. */
  readonly pod: IdentifiedPod;
  /** The object the source handed in, to recognise an unchanged one without comparing it. */
  readonly incoming: IdentifiedPod;
}

export type StoredPods = ReadonlyMap<PodUid, StoredPod>;

export interface Merge {
  readonly removes: readonly IdentifiedPod[];
  readonly adds: readonly IdentifiedPod[];
  readonly updates: readonly IdentifiedPod[];
  readonly deletes: readonly IdentifiedPod[];
  readonly reconciles: readonly IdentifiedPod[];
  /** Pods ignored because an earlier one of the same SET has the same name and namespace, or the same uid. */
  readonly duplicates: readonly IdentifiedPod[];
  readonly stored: StoredPods;
}

/** Compares the complete list of one source with what was known of it. Pure. */
export function mergeSet(known: StoredPods, source: PodSource, pods: readonly IdentifiedPod[], seenAt: string): Merge {
  const adds: IdentifiedPod[] = [];
  const updates: IdentifiedPod[] = [];
  const deletes: IdentifiedPod[] = [];
  const reconciles: IdentifiedPod[] = [];
  const duplicates: IdentifiedPod[] = [];
  const stored = new Map<PodUid, StoredPod>();
  const names = new Set<string>();
  for (const incoming of pods) {
    const name = fullName(incoming);
    const uid = uidOf(incoming);
    if (names.has(name) || stored.has(uid)) {
      duplicates.push(incoming);
      continue;
    }
    names.add(name);
    const before = known.get(uid);
    if (before === undefined) {
      const pod = withAnnotations(incoming, {
        ...incoming.metadata.annotations,
        [configSourceAnnotation]: source,
        [configSeenAnnotation]: seenAt,
      });
      adds.push(pod);
      stored.set(uid, { pod, incoming });
      continue;
    }
    const { change, pod } = compare(before, incoming);
    stored.set(uid, { pod, incoming });
    switch (change) {
      case "none":
        break;
      case "update":
        updates.push(pod);
        break;
      case "delete":
        deletes.push(pod);
        break;
      case "reconcile":
        reconciles.push(pod);
        break;
    }
  }
  const removes = [...known].flatMap(([uid, { pod }]) => (stored.has(uid) ? [] : [pod]));
  return { removes, adds, updates, deletes, reconciles, duplicates, stored };
}

interface Comparison {
  readonly change: "none" | "update" | "delete" | "reconcile";
  readonly pod: IdentifiedPod;
}

function compare({ pod: known, incoming: lastIncoming }: StoredPod, incoming: IdentifiedPod): Comparison {
  if (incoming === lastIncoming) return { change: "none", pod: known };
  if (!differsSemantically(known, incoming)) {
    if (jsonEqual(known.status, incoming.status)) return { change: "none", pod: known };
    return { change: "reconcile", pod: Object.freeze({ ...known, status: incoming.status }) };
  }
  const { labels, deletionTimestamp, deletionGracePeriodSeconds, generation } = incoming.metadata;
  const pod = Object.freeze({
    ...known,
    metadata: Object.freeze({
      ...known.metadata,
      labels,
      deletionTimestamp,
      deletionGracePeriodSeconds,
      generation,
      annotations: Object.freeze({
        ...withoutLocal(incoming.metadata.annotations),
        ...localOf(known.metadata.annotations),
      }),
    }),
    spec: incoming.spec,
    status: incoming.status,
  });
  return { change: deletionTimestamp === undefined ? "update" : "delete", pod };
}

/** A pod too odd to be compared counts as changed: one such pod must not hold up the others of its list. */
function differsSemantically(known: IdentifiedPod, incoming: IdentifiedPod): boolean {
  try {
    return hasOtherContent(known, incoming);
  } catch {
    return true;
  }
}

function hasOtherContent(known: IdentifiedPod, incoming: IdentifiedPod): boolean {
  const before = known.metadata;
  const after = incoming.metadata;
  return (
    before.deletionTimestamp !== after.deletionTimestamp ||
    before.deletionGracePeriodSeconds !== after.deletionGracePeriodSeconds ||
    !jsonEqual(before.labels ?? {}, after.labels ?? {}) ||
    !jsonEqual(withoutLocal(before.annotations), withoutLocal(after.annotations)) ||
    !jsonEqual(known.spec, incoming.spec)
  );
}

type Annotations = Readonly<Record<string, string>>;

function withoutLocal(annotations: Annotations = {}): Annotations {
  const rest = { ...annotations };
  for (const key of localAnnotations) delete rest[key];
  return rest;
}

function localOf(annotations: Annotations = {}): Annotations {
  return Object.fromEntries(
    localAnnotations.flatMap((key) => {
      const value = annotations[key];
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

function withAnnotations(pod: IdentifiedPod, annotations: Annotations): IdentifiedPod {
  return Object.freeze({
    ...pod,
    metadata: Object.freeze({ ...pod.metadata, annotations: Object.freeze(annotations) }),
  });
}
