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
import { withContainerLists } from "./container-lists.ts";

/** Annotations that agents write for themselves: they say nothing about what the user wants. */
const localAnnotations = [configSourceAnnotation, configMirrorAnnotation, configSeenAnnotation] as const;

/** What a source says of one pod after it has handed in a list. */
export type SourceChange =
  | { readonly type: "put"; readonly pod: IdentifiedPod }
  | { readonly type: "gone"; readonly uid: PodUid };

interface StoredPod {
  /** As the consumer knows it. */
  readonly pod: IdentifiedPod;
  /** The object the source handed in, to recognise an unchanged one without comparing it. */
  readonly incoming: IdentifiedPod;
}

/** What became of the pods of a source, by what has to be done about it. */
export interface Merge {
  readonly removes: readonly IdentifiedPod[];
  readonly adds: readonly IdentifiedPod[];
  readonly updates: readonly IdentifiedPod[];
  readonly deletes: readonly IdentifiedPod[];
  readonly reconciles: readonly IdentifiedPod[];
}

/** The pods that one source wants, and what each list or change of it means for them. */
export class SourceDiff {
  readonly #source: PodSource;
  #stored = new Map<PodUid, StoredPod>();

  constructor(source: PodSource) {
    this.#source = source;
  }

  all(): readonly IdentifiedPod[] {
    return [...this.#stored.values()].map(({ pod }) => pod);
  }

  /**
   * The source wants exactly these. `duplicates` are ignored: an earlier pod of the list has the same name and
   * namespace, or the same uid.
   */
  replace(
    pods: readonly IdentifiedPod[],
    seenAt: string,
  ): { readonly merge: Merge; readonly duplicates: readonly IdentifiedPod[] } {
    const known = this.#stored;
    this.#stored = new Map();
    const merge = new MergeList();
    const duplicates: IdentifiedPod[] = [];
    const names = new Set<string>();
    for (const incoming of pods) {
      const name = fullName(incoming);
      if (names.has(name) || this.#stored.has(uidOf(incoming))) duplicates.push(incoming);
      else this.#put(known.get(uidOf(incoming)), incoming, seenAt, merge);
      names.add(name);
    }
    for (const [uid, { pod }] of known) if (!this.#stored.has(uid)) merge.removes.push(pod);
    return { merge, duplicates };
  }

  /** The source wants this pod in its new version, or no longer; nothing is said of the others. */
  change(change: SourceChange, seenAt: string): Merge {
    const merge = new MergeList();
    if (change.type === "gone") this.#remove(change.uid, merge);
    else {
      const known = this.#stored.get(uidOf(change.pod));
      // Its source has one pod of a name at a time.
      if (known === undefined) this.#removeNamesakes(change.pod, merge);
      this.#put(known, change.pod, seenAt, merge);
    }
    return merge;
  }

  #put(known: StoredPod | undefined, sent: IdentifiedPod, seenAt: string, merge: MergeList): void {
    const incoming = withContainerLists(sent);
    const uid = uidOf(incoming);
    if (known === undefined) {
      const pod = withAnnotations(incoming, {
        ...incoming.metadata.annotations,
        [configSourceAnnotation]: this.#source,
        [configSeenAnnotation]: seenAt,
      });
      this.#stored.set(uid, { pod, incoming });
      merge.adds.push(pod);
      return;
    }
    const { change, pod } = compare(known, incoming);
    this.#stored.set(uid, { pod, incoming });
    switch (change) {
      case "none":
        break;
      case "update":
        merge.updates.push(pod);
        break;
      case "delete":
        merge.deletes.push(pod);
        break;
      case "reconcile":
        merge.reconciles.push(pod);
        break;
    }
  }

  #remove(uid: PodUid, merge: MergeList): void {
    const known = this.#stored.get(uid);
    if (known === undefined) return;
    this.#stored.delete(uid);
    merge.removes.push(known.pod);
  }

  #removeNamesakes(pod: IdentifiedPod, merge: MergeList): void {
    const name = fullName(pod);
    for (const [uid, { pod: other }] of this.#stored) if (fullName(other) === name) this.#remove(uid, merge);
  }
}

class MergeList implements Merge {
  readonly removes: IdentifiedPod[] = [];
  readonly adds: IdentifiedPod[] = [];
  readonly updates: IdentifiedPod[] = [];
  readonly deletes: IdentifiedPod[] = [];
  readonly reconciles: IdentifiedPod[] = [];
}

interface Comparison {
  readonly change: "none" | "update" | "delete" | "reconcile";
  readonly pod: IdentifiedPod;
}

function compare({ pod: known, incoming: lastIncoming }: StoredPod, incoming: IdentifiedPod): Comparison {
  if (incoming === lastIncoming) return { change: "none", pod: known };
  if (!differs(() => hasOtherContent(known, incoming))) {
    if (!differs(() => !jsonEqual(known.status, incoming.status))) return { change: "none", pod: known };
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
function differs(look: () => boolean): boolean {
  try {
    return look();
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
