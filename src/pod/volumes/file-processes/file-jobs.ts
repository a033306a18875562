import { stat } from "node:fs/promises";
import { type GroupOwnership, giveToGroup } from "../content/fs-group-ownership.ts";
import { bindMount } from "../mounting/bind.ts";
import { checkHostPath, foreseeHostPath } from "../mounting/host-path-type.ts";
import { createSubPath, mountSubPath } from "../mounting/sub-paths.ts";

/** What is told while a job goes on. */
export type JobNews =
  | { readonly files: number }
  | { readonly problem: { readonly path: string; readonly message: string } };

type Job<Input, Output> = (input: Input, tell: (news: JobNews) => void, signal: AbortSignal) => Promise<Output>;

function job<Input, Output>(run: Job<Input, Output>): Job<Input, Output> {
  return run;
}

/** Everything that is done with files of volumes by path, so that it can be done here or in a process of its own. */
export const fileJobs = {
  giveToGroup: job(({ root, ownership }: { root: string; ownership: GroupOwnership }, tell, signal) =>
    giveToGroup(
      root,
      ownership,
      { onFiles: (files) => tell({ files }), onProblem: (path, message) => tell({ problem: { path, message } }) },
      signal,
    ),
  ),
  createSubPath: job(({ volumePath, subPath }: { volumePath: string; subPath: string }) =>
    createSubPath(volumePath, subPath),
  ),
  mountSubPath: job((input: { volumePath: string; subPath: string; target: string }) =>
    mountSubPath(input.volumePath, input.subPath, input.target),
  ),
  checkHostPath: job(({ path, type }: { path: string; type: string }) => checkHostPath(path, type)),
  foreseeHostPath: job(({ path, type }: { path: string; type: string }) => foreseeHostPath(path, type)),
  bindMount: job((input: { source: string; target: string; options: readonly string[] }) =>
    bindMount(input.source, input.target, input.options),
  ),
  lookAt: job(async ({ path }: { path: string }) => {
    const found = await stat(path);
    return { isDirectory: found.isDirectory(), isBlockDevice: found.isBlockDevice(), gid: found.gid };
  }),
} as const;

export type FileJobs = typeof fileJobs;
export type FileJobName = keyof FileJobs;
export type InputOf<Name extends FileJobName> = Parameters<FileJobs[Name]>[0];
export type OutputOf<Name extends FileJobName> = Awaited<ReturnType<FileJobs[Name]>>;

/** What the process of file-process.ts is sent, and what it sends. */
export interface JobMessage {
  readonly name: FileJobName;
  readonly input: unknown;
}
export type JobAnswer =
  | { readonly news: JobNews }
  | { readonly result: unknown }
  | { readonly failure: { readonly name: string; readonly message: string; readonly code: string | undefined } };
