import { readdir, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { criCodeOf, type RuntimeService } from "../cri/index.ts";
import type { ObservedContainer, ObservedPod } from "../model/index.ts";

/** Removes what the runtime still remembers of a pod that has ended, and its logs. */
export async function removePodFromRuntime(
  observed: ObservedPod,
  runtime: RuntimeService,
  logs: { readonly podLogsDir: string; readonly legacyDir: string },
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(observed.containers.map((container) => removeContainer(container, runtime, logs, signal)));
  await Promise.all(
    observed.sandboxes.map(async ({ id: podSandboxId }) => {
      await unlessMissing(runtime.stopPodSandbox({ podSandboxId }, { signal }));
      await unlessMissing(runtime.removePodSandbox({ podSandboxId }, { signal }));
    }),
  );
  const { namespace, name, uid } = observed;
  if (uid !== "" && name !== "") {
    await rm(join(logs.podLogsDir, `${namespace}_${name}_${uid}`), { recursive: true, force: true });
  }
}

export async function removeContainer(
  container: ObservedContainer,
  runtime: RuntimeService,
  logs: { readonly podLogsDir: string; readonly legacyDir: string },
  signal: AbortSignal,
): Promise<void> {
  for (const entry of await namesIn(logs.legacyDir)) {
    if (entry.endsWith(`-${container.id}.log`)) await unlink(join(logs.legacyDir, entry)).catch(() => {});
  }
  await unlessMissing(runtime.removeContainer({ containerId: container.id }, { signal }));
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch {
    return [];
  }
}

async function unlessMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (criCodeOf(error) !== "NotFound") throw error;
  }
}
