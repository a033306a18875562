import {
  isConflict,
  isNotFound,
  isOtherUid,
  isTooLarge,
  type KubeClient,
  resources,
} from "../../connections/kube/index.ts";
import {
  type Clock,
  isAbort,
  KeyedWorkers,
  Limiter,
  type Logger,
  messageOf,
  type TaskScope,
  type Timer,
} from "../../ground/base/index.ts";
import type { IdentifiedPod, PodStatus, PodUid } from "../../ground/model/index.ts";
import { isOwnCondition } from "./conditions.ts";
import { deleteApiPod } from "./final-deletion.ts";
import { isPassing } from "./passing-news.ts";
import { statusPatch } from "./patch.ts";
import { nextShorter, type StatusLength, shortened } from "./shortened.ts";

const firstRetryMs = 250;
const longestRetryMs = 10_000;
/** How long news may wait that the next status will say better; the slowest start or end shows by then. */
const passingMs = 1_000;

/**
 * Brings the API's copy of every pod's status in line with ours: at once when it changes, as often as it takes when
 * the API is away. One request per pod at a time; what changes meanwhile goes with the next.
 */
export class StatusSender {
  readonly #ports: StatusSenderPorts;
  readonly #workers: KeyedWorkers<PodUid>;
  readonly #slots: Limiter;
  readonly #failures = new Map<PodUid, number>();
  readonly #timers = new Map<PodUid, Timer>();
  /** Of those whose whole status was too much for the API. */
  readonly #lengths = new Map<PodUid, StatusLength>();
  /** What was made last of what the API has and what is to be told: it is asked for several times on the way. */
  readonly #patches = new Map<PodUid, StatusPatch>();
  /** Since when the API's copy may differ from ours. */
  readonly #differsSince = new Map<PodUid, number>();
  /** The version of the API's copy whose final deletion was asked for: the watch may take a while to bring that. */
  readonly #deleted = new Map<PodUid, string | undefined>();

  constructor(scope: TaskScope, ports: StatusSenderPorts) {
    this.#ports = ports;
    this.#slots = new Limiter(ports.atOnce);
    this.#workers = new KeyedWorkers(scope, (uid, signal) => this.#sync(uid, signal));
  }

  /** The status, the API's copy of it, or the pod's state on this node may have changed. */
  wake(uid: PodUid): void {
    this.#timers.get(uid)?.cancel();
    this.#timers.delete(uid);
    if (!this.#differsSince.has(uid)) this.#differsSince.set(uid, this.#ports.clock.monotonic());
    this.#workers.wake(uid);
  }

  /** The API server has the pod's present status, or has no such pod. */
  isInStep(uid: PodUid): boolean {
    const api = this.#ports.apiPod(uid);
    const status = this.#ports.status(uid);
    return api === undefined || status === undefined || this.#patchOf(uid, api, status) === undefined;
  }

  forget(uid: PodUid): void {
    this.#timers.get(uid)?.cancel();
    this.#timers.delete(uid);
    this.#failures.delete(uid);
    this.#lengths.delete(uid);
    this.#patches.delete(uid);
    this.#differsSince.delete(uid);
    this.#deleted.delete(uid);
  }

  async #sync(uid: PodUid, signal: AbortSignal): Promise<void> {
    const differsSince = this.#differsSince.get(uid);
    if (differsSince !== undefined && this.#waits(uid, differsSince)) return;
    this.#differsSince.delete(uid);
    try {
      const sent = await this.#send(uid, signal);
      this.#failures.delete(uid);
      if (sent === "patched" && differsSince !== undefined) {
        this.#ports.onSynced?.(this.#ports.clock.monotonic() - differsSince);
      }
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      if (differsSince !== undefined) this.#differsSince.set(uid, differsSince);
      const failures = (this.#failures.get(uid) ?? 0) + 1;
      this.#failures.set(uid, failures);
      const waitMs = Math.min(firstRetryMs * 2 ** (failures - 1), longestRetryMs);
      this.#ports.log.warn("Could not send a pod's status; trying again", { uid, waitMs, err: messageOf(error) });
      this.#tryAfter(waitMs, uid);
    }
  }

  #tryAfter(waitMs: number, uid: PodUid): void {
    this.#timers.get(uid)?.cancel();
    this.#timers.set(
      uid,
      this.#ports.clock.after(waitMs, () => this.#workers.wake(uid)),
    );
  }

  /** Whether all there is to say may wait for what comes next; it is said in time if nothing comes. */
  #waits(uid: PodUid, since: number): boolean {
    const leftMs = since + passingMs - this.#ports.clock.monotonic();
    const api = this.#ports.apiPod(uid);
    const status = this.#ports.status(uid);
    if (leftMs <= 0 || api === undefined || status === undefined) return false;
    if (!isPassing(api, status) || this.#patchOf(uid, api, status) === undefined) return false;
    this.#tryAfter(leftMs, uid);
    return true;
  }

  async #send(uid: PodUid, signal: AbortSignal): Promise<"patched" | "same"> {
    const api = this.#ports.apiPod(uid);
    const status = this.#ports.status(uid);
    if (api === undefined || status === undefined) return "same";
    const patch = this.#patchOf(uid, api, status);
    const shown =
      patch === undefined ? api : await this.#slots.run(() => this.#patch(uid, api, status, signal), signal);
    // Only when the API shows the end may the pod vanish, or controllers would never learn how it ended.
    const isNews = this.#ports.status(uid) !== status;
    if (shown !== undefined && !isNews && this.#ports.mayDelete(uid, shown) && !this.#isDeleted(uid, shown)) {
      await this.#slots.run(() => this.#delete(shown, signal), signal);
      this.#deleted.set(uid, shown.metadata.resourceVersion);
    }
    return patch === undefined ? "same" : "patched";
  }

  #isDeleted(uid: PodUid, { metadata: { resourceVersion } }: IdentifiedPod): boolean {
    return resourceVersion !== undefined && this.#deleted.get(uid) === resourceVersion;
  }

  #patchOf(uid: PodUid, api: IdentifiedPod, status: PodStatus): object | undefined {
    const length = this.#lengths.get(uid) ?? "whole";
    const known = this.#patches.get(uid);
    if (known?.api === api && known.status === status && known.length === length) return known.patch;
    const told = shortened(status, length);
    const patch = statusPatch(api.metadata.uid, api.status ?? {}, mergeForeign(api.status ?? {}, told));
    this.#patches.set(uid, { api, status, length, patch });
    return patch;
  }

  /** Resolves with the pod as the API has it then; undefined when it is gone. */
  async #patch(
    uid: PodUid,
    api: IdentifiedPod,
    status: PodStatus,
    signal: AbortSignal,
  ): Promise<IdentifiedPod | undefined> {
    const { namespace, name } = api.metadata;
    const ref = { namespace, name, subresource: "status" };
    for (;;) {
      const body = this.#patchOf(uid, api, status);
      if (body === undefined) return api;
      try {
        const stored = await this.#ports.client.patch(resources.pods, ref, { type: "strategic", body }, signal);
        const patched = stored as IdentifiedPod;
        this.#ports.onSent(patched);
        return patched;
      } catch (error) {
        // The pod is gone, or another of that name has come: nobody wants to know any more.
        if (isGone(error)) return undefined;
        if (!isTooLarge(error) || !this.#shorten(uid, error)) throw error;
      }
    }
  }

  /** Sends less of the pod's status from now on; false where there is nothing less. */
  #shorten(uid: PodUid, error: unknown): boolean {
    const length = nextShorter(this.#lengths.get(uid) ?? "whole");
    if (length === undefined) return false;
    this.#lengths.set(uid, length);
    const err = messageOf(error);
    this.#ports.log.warn("A pod's status is more than the API server takes; sending less of it", { uid, length, err });
    return true;
  }

  async #delete(api: IdentifiedPod, signal: AbortSignal): Promise<void> {
    try {
      await deleteApiPod(this.#ports.client, api, signal);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

interface StatusPatch {
  readonly api: IdentifiedPod;
  readonly status: PodStatus;
  readonly length: StatusLength;
  readonly patch: object | undefined;
}

export interface StatusSenderPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** How many requests may be under way. */
  readonly atOnce: number;
  /** The API's copy: of the pod, or of a static pod's mirror. */
  readonly apiPod: (uid: PodUid) => IdentifiedPod | undefined;
  readonly status: (uid: PodUid) => PodStatus | undefined;
  readonly client: Pick<KubeClient, "patch" | "delete">;
  /** The API's answer to a patch is newer than what the watch has brought. */
  readonly onSent: (api: IdentifiedPod) => void;
  /** How long it took until the API had a status that had changed, for metrics. */
  readonly onSynced?: (durationMs: number) => void;
  /** The pod is being deleted, `api` shows that it has ended, and nothing of it is in use here. */
  readonly mayDelete: (uid: PodUid, api: IdentifiedPod) => boolean;
}

/** The API server answers a patch that names another uid with 422, a delete with 409. */
function isGone(error: unknown): boolean {
  return isNotFound(error) || isConflict(error) || isOtherUid(error);
}

/** Conditions of others are theirs: the API's version of them counts. */
function mergeForeign(api: PodStatus, own: PodStatus): PodStatus {
  const ownList = (own.conditions ?? []).filter(
    (condition) => isOwnCondition(condition) || condition.reason === "TerminationByKubelet",
  );
  const foreign = (api.conditions ?? []).filter(
    (condition) => !isOwnCondition(condition) && !ownList.some(({ type }) => type === condition.type),
  );
  return { ...own, conditions: [...foreign, ...ownList] };
}
