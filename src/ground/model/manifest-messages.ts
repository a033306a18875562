import type { ManifestKinds } from "./manifest-kinds.ts";
import type { Problem } from "./problem.ts";

/** What the process of manifest-process.ts is given and answers with. */
export type ManifestQuestion =
  | {
      readonly read: "manifest";
      readonly text: string;
      readonly kinds: readonly [keyof ManifestKinds, ...(keyof ManifestKinds)[]];
    }
  | { readonly read: "plain"; readonly text: string };

export type ManifestAnswer = { readonly result: unknown } | { readonly failure: string };

export interface ReadManifest<Kind extends keyof ManifestKinds> {
  readonly object: ManifestKinds[Kind] | undefined;
  readonly problems: readonly Problem[];
}
