import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Ledger, messageOf } from "../base/index.ts";
import { readMounts } from "../host/index.ts";
import { type IdentifiedPod, type PodUid, type RecordPodEvent, uidOf } from "../model/index.ts";
import type { PodVolumes } from "../volumes/index.ts";
import type { PodSetupPort } from "../workers/index.ts";

/** Directories, cgroup and volumes of a pod: there before its first container, gone after its last. */
export class PodSetup implements PodSetupPort {
  readonly #ports: PodSetupPorts;

  constructor(ports: PodSetupPorts) {
    this.#ports = ports;
  }

  async prepare(pod: IdentifiedPod, signal: AbortSignal): Promise<void> {
    const uid = uidOf(pod);
    const { recordEvent, cgroups, volumes } = this.#ports;
    await Promise.all([
      this.#step(
        uid,
        "cgroup",
        () => cgroups.ensure(pod),
        (message) =>
          recordEvent(pod, {
            type: "Warning",
            reason: "FailedCreatePodContainer",
            message: `unable to ensure pod container exists: ${message}`,
          }),
      ),
      this.#step(
        uid,
        "volumes",
        async () => {
          const directory = join(this.#ports.podsDir, uid);
          for (const name of ["volumes", "plugins"])
            await mkdir(join(directory, name), { recursive: true, mode: 0o750 });
          await volumes.mount(pod, signal);
        },
        (message) =>
          recordEvent(pod, {
            type: "Warning",
            reason: "FailedMount",
            message: `Unable to attach or mount volumes: ${message}`,
          }),
      ),
    ]);
  }

  async release(uid: PodUid, _pod: IdentifiedPod | undefined, signal: AbortSignal): Promise<void> {
    await this.#step(uid, "cleanup", async () => {
      await this.#ports.volumes.unmount(uid);
      await this.#ports.cgroups.remove(uid, signal);
    });
  }

  async removeContent(uid: PodUid, signal: AbortSignal): Promise<void> {
    await this.#ports.removeFromRuntime(uid, signal);
    await this.#removeDirectory(uid);
    this.#ports.forget(uid);
  }

  /** A directory that still holds a mount holds somebody's data: it stays, and is looked at again later. */
  async #removeDirectory(uid: PodUid): Promise<void> {
    const directory = join(this.#ports.podsDir, uid);
    const inUse = (await readMounts()).find(({ mountPoint }) => mountPoint.startsWith(`${directory}/`));
    if (inUse !== undefined) throw new Error(`${inUse.mountPoint} is still mounted, so ${directory} can't be removed`);
    await rm(directory, { recursive: true, force: true });
  }

  async #step(
    uid: PodUid,
    step: "cgroup" | "volumes" | "cleanup",
    work: () => Promise<void>,
    onFailure?: (message: string) => void,
  ): Promise<void> {
    const span = this.#ports.ledger.begin(uid, step);
    try {
      await work();
      span.end();
    } catch (error) {
      span.fail(messageOf(error));
      onFailure?.(messageOf(error));
      throw error;
    }
  }
}

export interface PodSetupPorts {
  readonly podsDir: string;
  readonly ledger: Ledger<PodUid>;
  readonly recordEvent: RecordPodEvent;
  readonly volumes: PodVolumes;
  readonly cgroups: {
    ensure(pod: IdentifiedPod): Promise<void>;
    remove(uid: PodUid, signal: AbortSignal): Promise<void>;
  };
  /** Removes containers with their logs, then sandboxes. */
  readonly removeFromRuntime: (uid: PodUid, signal: AbortSignal) => Promise<void>;
  readonly forget: (uid: PodUid) => void;
}
