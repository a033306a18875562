import type { VolumeFiles } from "../file-processes/volume-files.ts";
import type { VolumeKind } from "./kind.ts";

/** A path of the node itself. The optional type says what must be there, or may be created. */
export const hostPathKind = ({ files }: { readonly files: VolumeFiles }): VolumeKind => ({
  plugin: "kubernetes.io/host-path",
  matches: (source) => hostPathOf(source) !== undefined,
  async foresee({ source, uid }, signal) {
    const { path, type } = checkedPath(source);
    const state = await files.run("foreseeHostPath", { path, type }, { path, owner: uid }, signal);
    if (state === "there") return { from: path };
    const note =
      state === "missing" ? "it is not there; what the runtime makes of that is its own" : "it would be made";
    return { from: path, note };
  },
  async setUp({ source, uid }, _context, signal) {
    const { path, type } = checkedPath(source);
    if (type !== "") await files.run("checkHostPath", { path, type }, { path, owner: uid }, signal);
    const readOnly = source.type === "claim" && source.readOnly;
    // Never relabelled: a path of the host belongs to the host.
    return { volume: { type: "filesystem", hostPath: path, readOnly, relabel: false } };
  },
  // It has no directory of its own, and the host's path is the host's.
  async tearDown() {},
});

function checkedPath(source: Source): { readonly path: string; readonly type: string } {
  const { path = "", type = "" } = hostPathOf(source) ?? {};
  if (path.split("/").includes("..")) throw new Error(`invalid HostPath \`${path}\`: must not contain '..'`);
  return { path, type };
}

type Source = Parameters<VolumeKind["matches"]>[0];

function hostPathOf(source: Source): { readonly path: string; readonly type?: string | undefined } | undefined {
  return source.type === "inline" ? source.volume.hostPath : source.persistent.spec?.hostPath;
}
