import type { Clock, Logger } from "../../../ground/base/index.ts";
import type { RecordPodEvent } from "../../../ground/model/index.ts";
import type { JobNews } from "../file-processes/file-jobs.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import type { SetUpContext, WantedVolume } from "./kind.ts";

export interface OwnershipPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordEvent: RecordPodEvent;
  readonly files: VolumeFiles;
}

const firstWordMs = 30_000;
const furtherWordMs = 60_000;
const advice =
  "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods";

/** Gives a volume to the group that the pod's securityContext.fsGroup names; nothing to do without one. */
export async function giveToPodGroup(
  request: {
    readonly wanted: WantedVolume;
    readonly path: string;
    readonly readOnly: boolean;
    /** Undefined: as the pod says. */
    readonly policy?: "Always" | "OnRootMismatch" | undefined;
    /** A directory that we have made ourselves; what else may be anywhere, and never answer. */
    readonly isOurs?: boolean;
  },
  context: Pick<SetUpContext, "progress">,
  { clock, log, recordEvent, files: volumeFiles }: OwnershipPorts,
  signal: AbortSignal,
): Promise<void> {
  const { wanted, path, readOnly } = request;
  const { fsGroup: gid, fsGroupChangePolicy } = wanted.pod.spec.securityContext ?? {};
  if (gid === undefined) return;
  const policy = request.policy ?? (fsGroupChangePolicy === "OnRootMismatch" ? "OnRootMismatch" : "Always");
  const subject = `${wanted.uid}/${wanted.specName}`;
  const announce = (message: string): void =>
    recordEvent(wanted.pod, { type: "Warning", reason: "VolumePermissionChangeInProgress", message });
  let files = 0;
  let problems = 0;
  const tick = (): void => {
    announce(`Setting volume ownership for ${subject}, processed ${files} files.`);
    timer = clock.after(furtherWordMs, tick);
  };
  let timer = clock.after(firstWordMs, () => {
    announce(
      `Setting volume ownership for ${subject} is taking longer than expected, consider using OnRootMismatch - ${advice}`,
    );
    tick();
  });
  try {
    const tell = (news: JobNews): void => {
      if ("files" in news) {
        files = news.files;
        context.progress(`giving files to group ${gid}: ${files} done`);
      } else if (problems++ < 3) {
        // One line tells what is wrong; a million would say no more.
        log.warn("Cannot set the group of a file in a volume", { gid, ...news.problem });
      }
    };
    const task = { path: request.isOurs === true ? undefined : path, owner: wanted.uid, tell };
    const ownership = { gid, readOnly, policy } as const;
    const result = await volumeFiles.run("giveToGroup", { root: path, ownership }, task, signal);
    if (problems > 3) log.warn("More files in a volume kept their group", { path, gid, count: problems });
    if (result !== "skipped") log.debug(3, "Volume given to its group", { path, gid, files: result.files });
  } finally {
    timer.cancel();
  }
}
