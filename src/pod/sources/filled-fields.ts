import { cutText } from "../../ground/base/index.ts";
import { jsonEqual, type Pod } from "../../ground/model/index.ts";

/** A field that was not written so, and what it is taken to be. */
export interface FilledField {
  /** Such as `spec.containers[0].imagePullPolicy`. */
  readonly field: string;
  /** As JSON. */
  readonly value: string;
}

/** Longer ones were hardly filled in by us. */
const longestValue = 256;
/** What agents note for themselves says nothing to who wrote the manifest. */
const ownNotes = "kubernetes.io/config.";

/** What the pod has that was not written, in order. Lazily: there may be a hundred thousand. */
export function* filledFields(written: Pod, { metadata, spec }: Pod): Generator<FilledField> {
  yield* differences(written.metadata, metadata, "metadata");
  yield* differences(written.spec, spec, "spec");
}

function* differences(before: unknown, after: unknown, field: string): Generator<FilledField> {
  // Parts that nothing was filled into are the very same.
  if (before === after) return;
  if (Array.isArray(before) && Array.isArray(after)) {
    for (const [index, item] of after.entries()) yield* differences(before[index], item, `${field}[${index}]`);
    return;
  }
  if (isRecord(after) && (isRecord(before) || field === "metadata" || field === "metadata.annotations")) {
    const known = isRecord(before) ? before : {};
    for (const [key, item] of Object.entries(after)) {
      if (item !== undefined && !key.startsWith(ownNotes)) yield* differences(known[key], item, `${field}.${key}`);
    }
    return;
  }
  if (!jsonEqual(before, after)) yield { field, value: cutText(JSON.stringify(after) ?? "null", longestValue) };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
