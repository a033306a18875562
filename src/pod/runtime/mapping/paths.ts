import { join } from "node:path";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import type { Directories } from "./context.ts";

function podDirectory({ rootDir }: Pick<Directories, "rootDir">, uid: string): string {
  return join(rootDir, "pods", uid);
}

/** Where the termination message files of a container live. */
export function containerDirectory(directories: Pick<Directories, "rootDir">, uid: string, name: string): string {
  return join(podDirectory(directories, uid), "containers", name);
}

export function hostsFilePath(directories: Pick<Directories, "rootDir">, uid: string): string {
  return join(podDirectory(directories, uid), "etc-hosts");
}

export function podLogDirectory({ podLogsDir }: Pick<Directories, "podLogsDir">, pod: IdentifiedPod): string {
  const { namespace, name, uid } = pod.metadata;
  return join(podLogsDir, `${namespace}_${name}_${uid}`);
}

export function containerLogDirectory(
  directories: Pick<Directories, "podLogsDir">,
  pod: IdentifiedPod,
  name: string,
): string {
  return join(podLogDirectory(directories, pod), name);
}

/** Relative to the pod's log directory, as the runtime wants it. */
export function containerLogPath(name: string, restartCount: number): string {
  return join(name, `${restartCount}.log`);
}

/** The pod's uid in the name of its log directory; very old directories are named by the uid alone. */
export function uidOfLogDirectory(name: string): string {
  return name.slice(name.lastIndexOf("_") + 1);
}

const longestFileName = 255;

/** The name under which log collectors look for a container's log, cut to what a file name may have. */
export function legacyLogName(pod: IdentifiedPod, containerName: string, containerId: string): string {
  const { name, namespace } = pod.metadata;
  const full = `${name}_${namespace}_${containerName}-${containerId}`;
  return `${full.slice(0, longestFileName - ".log".length)}.log`;
}

/** The container id in such a name; undefined when it was cut to less than a runtime can look up. */
export function containerIdOfLegacyLog(fileName: string): string | undefined {
  return /-([^-]{6,})\.log$/.exec(fileName)?.[1];
}
