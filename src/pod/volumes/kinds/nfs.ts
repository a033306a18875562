import { mkdir, rmdir } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { isMountPoint, type RunTool } from "../../../connections/host/index.ts";
import { type Clock, ifThere } from "../../../ground/base/index.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import { unmountPatiently } from "../mounting/unmount.ts";
import type { VolumeKind, VolumeSource } from "./kind.ts";
import { mountOptionsOf } from "./mount-options.ts";

export interface NfsPorts {
  readonly run: RunTool;
  readonly clock: Clock;
  readonly files: VolumeFiles;
}

/** A directory of a file server. Programs mount it: they know how to talk to the server, and may hang in our place. */
export function nfsKind({ run, clock, files }: NfsPorts): VolumeKind {
  return {
    plugin: "kubernetes.io/nfs",
    takesMountOptions: true,
    matches: (source) => sourceOf(source) !== undefined,
    async setUp({ source, directory }, _context, signal) {
      const { server = "", path = "", readOnly: inlineReadOnly = false } = sourceOf(source) ?? {};
      const readOnly = source.type === "claim" ? source.readOnly : inlineReadOnly;
      if (!(await isMountPoint(directory))) {
        await mkdir(directory, { recursive: true, mode: 0o750 });
        const options = source.type === "claim" ? [...mountOptionsOf(source.persistent)] : [];
        if (readOnly) options.push("ro");
        const host = isIPv6(server) ? `[${server}]` : server;
        const flags = options.length === 0 ? [] : ["-o", options.join(",")];
        try {
          // What comes after the two dashes is never taken for an option, whatever a server is called.
          await run("mount", ["-t", "nfs", ...flags, "--", `${host}:${path}`, directory], signal);
        } catch (error) {
          if (!(await isMountPoint(directory))) await rmdir(directory);
          throw error;
        }
      }
      return { volume: { type: "filesystem", hostPath: directory, readOnly, relabel: false } };
    },
    measure: ({ directory, uid }, signal) => files.usage(directory, uid, signal),
    async tearDown({ directory }, signal) {
      if (await isMountPoint(directory)) await unmountPatiently(directory, { run, clock }, signal);
      await ifThere(rmdir(directory));
    },
  };
}

function sourceOf(source: VolumeSource): { server: string; path: string; readOnly?: boolean | undefined } | undefined {
  return source.type === "inline" ? source.volume.nfs : source.persistent.spec?.nfs;
}
