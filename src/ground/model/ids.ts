declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** metadata.uid of a pod (for a static pod: of the static pod itself, not of its mirror). */
export type PodUid = Branded<"PodUid">;
/** The runtime's id of a container, without the `containerd://` scheme. */
export type ContainerId = Branded<"ContainerId">;
export type SandboxId = Branded<"SandboxId">;

/** Directories and cgroups are named after a pod's uid: one that is no plain file name would lead out of where they lie. */
const plainUid = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export function isPlainUid(uid: string): boolean {
  return plainUid.test(uid);
}
