import { mkdir, rmdir } from "node:fs/promises";
import { isIPv6 } from "node:net";
import type { Clock } from "../../base/index.ts";
import { isMissing, isMountPoint, type RunTool } from "../../host/index.ts";
import { mountOptionsOf } from "../engine/claims.ts";
import { usageOfFileSystem } from "../stats/disk-usage.ts";
import type { VolumeKind, VolumeSource } from "./kind.ts";

export interface NfsPorts {
  readonly run: RunTool;
  readonly clock: Clock;
}

const unmountMs = 60_000;

/** A directory of a file server. Programs mount it: they know how to talk to the server, and may hang in our place. */
export function nfsKind({ run, clock }: NfsPorts): VolumeKind {
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
    measure: ({ directory }) => usageOfFileSystem(directory),
    async tearDown({ directory }, signal) {
      if (await isMountPoint(directory)) await unmountServer(directory, { run, clock }, signal);
      await rmdir(directory).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
    },
  };
}

/** A server that is away would keep us waiting for ever; after a minute we insist. */
async function unmountServer(directory: string, { run, clock }: NfsPorts, signal: AbortSignal): Promise<void> {
  const patience = new AbortController();
  const stop = (): void => patience.abort(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const timer = clock.after(unmountMs, () => patience.abort(new Error("the file server does not answer")));
  try {
    await run("umount", [directory], patience.signal);
  } catch (error) {
    if (signal.aborted || !patience.signal.aborted) throw error;
    await run("umount", ["-f", directory], signal);
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", stop);
  }
}

function sourceOf(source: VolumeSource): { server: string; path: string; readOnly?: boolean | undefined } | undefined {
  return source.type === "inline" ? source.volume.nfs : source.persistent.spec?.nfs;
}
