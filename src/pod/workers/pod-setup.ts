import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../ground/base/index.ts";
import {
  type IdentifiedPod,
  type PodLedger,
  type PodUid,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import { ClaimError } from "../resources/index.ts";
import { type PodVolumes, removePodDirectory, VolumeError } from "../volumes/index.ts";
import type { PodSetupPort } from "./ports.ts";

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
        (message, error) => {
          // Usually events about the single volumes have told already what is wrong with them.
          if (error instanceof VolumeError && error.isAnnounced) return;
          recordEvent(pod, {
            type: "Warning",
            reason: "FailedMount",
            message: `Unable to attach or mount volumes: ${message}`,
          });
        },
      ),
    ]);
  }

  async prepareClaims(pod: IdentifiedPod, hasSandbox: boolean, signal: AbortSignal): Promise<void> {
    const { claims, recordEvent } = this.#ports;
    try {
      await claims?.prepare(pod, hasSandbox, signal);
    } catch (error) {
      if (error instanceof ClaimError) {
        const message = `Failed to prepare dynamic resources: ${messageOf(error)}`;
        recordEvent(pod, { type: "Warning", reason: error.reason, message });
      }
      throw error;
    }
  }

  holdsClaims(uid: PodUid): boolean {
    return this.#ports.claims?.holds(uid) ?? false;
  }

  keep(pod: IdentifiedPod): void {
    this.#ports.volumes.want(pod);
    this.#ports.claims?.keep(pod);
  }

  async release(uid: PodUid, pod: IdentifiedPod | undefined, signal: AbortSignal): Promise<void> {
    // Neither waits for the other: a driver that is gone keeps no volume, and a volume that hangs keeps no device.
    const results = await Promise.allSettled([
      this.#step(uid, "cleanup", async () => {
        await this.#ports.volumes.unmount(uid, signal);
        await this.#ports.cgroups.remove(uid, signal);
      }),
      this.#releaseClaims(uid, pod, signal),
    ]);
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #releaseClaims(uid: PodUid, pod: IdentifiedPod | undefined, signal: AbortSignal): Promise<void> {
    const { claims, recordEvent } = this.#ports;
    try {
      await claims?.release(uid, signal);
    } catch (error) {
      if (error instanceof ClaimError && pod !== undefined) {
        const message = `Failed to unprepare dynamic resources: ${messageOf(error)}`;
        recordEvent(pod, { type: "Warning", reason: error.reason, message });
      }
      throw error;
    }
  }

  async removeContent(uid: PodUid, signal: AbortSignal): Promise<void> {
    await this.#ports.removeFromRuntime(uid, signal);
    await this.#ports.forgetCheckpoint(uid);
    await removePodDirectory(join(this.#ports.podsDir, uid));
    this.#ports.onGone(uid);
  }

  async #step(
    uid: PodUid,
    step: "cgroup" | "volumes" | "cleanup",
    work: () => Promise<void>,
    onFailure?: (message: string, error: unknown) => void,
  ): Promise<void> {
    const span = this.#ports.ledger.begin(uid, step);
    try {
      await span.within(work);
      span.end();
    } catch (error) {
      span.fail(messageOf(error));
      onFailure?.(messageOf(error), error);
      throw error;
    }
  }
}

export interface PodSetupPorts {
  readonly podsDir: string;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  readonly volumes: PodVolumes;
  readonly cgroups: {
    ensure(pod: IdentifiedPod): Promise<void>;
    remove(uid: PodUid, signal: AbortSignal): Promise<void>;
  };
  /** Undefined: there are no resource claims on this node. */
  readonly claims?:
    | {
        prepare(pod: IdentifiedPod, hasSandbox: boolean, signal: AbortSignal): Promise<void>;
        keep(pod: IdentifiedPod): void;
        release(uid: PodUid, signal: AbortSignal): Promise<void>;
        holds(uid: PodUid): boolean;
      }
    | undefined;
  /** Removes containers with their logs, then sandboxes. */
  readonly removeFromRuntime: (uid: PodUid, signal: AbortSignal) => Promise<void>;
  /** Resolves when nothing is written into the pod's directory any more. */
  readonly forgetCheckpoint: (uid: PodUid) => Promise<void>;
  readonly onGone: (uid: PodUid) => void;
}
