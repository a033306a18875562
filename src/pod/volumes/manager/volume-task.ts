import { type Clock, explain, isAbort, type Logger, onAbort, type Timer } from "../../../ground/base/index.ts";
import type { IdentifiedPod, PodLedger, PodUid, RecordPodEvent } from "../../../ground/model/index.ts";
import {
  type MountStep,
  type Need,
  StepError,
  UnresolvedVolumeError,
  type VolumeKind,
  type VolumePlace,
  type VolumeSource,
  type WantedVolume,
} from "../kinds/kind.ts";
import { mountOptionsOf } from "../kinds/mount-options.ts";
import type { VolumeUsage } from "../stats/disk-usage.ts";
import { PacedLooks } from "../stats/paced-looks.ts";
import { isLocalEphemeral, type MeasuredVolume } from "../stats/pod-usage.ts";
import { type Claims, checkNodeAffinity, groupOf, resolveSource } from "./claims.ts";
import type { PodPlaces } from "./places.ts";
import { retryDelayMs, type VolumeFailure, type VolumeState } from "./volume-state.ts";
import type { ContainerVolume } from "./volumes-of-containers.ts";

export interface TaskPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  readonly random: () => number;
  readonly kinds: readonly VolumeKind[];
  readonly claims: Claims | undefined;
  readonly places: PodPlaces;
  /** How often content that is not told of changes must be read again. */
  readonly pollMs: number | undefined;
  /** Calls for a run of this task; runs of one task never overlap. */
  readonly wake: (task: VolumeTask) => void;
  readonly onState: (task: VolumeTask) => void;
  readonly onNeeds: (task: VolumeTask, before: readonly Need[]) => void;
  /** Throws when the persistent volume may only be used by one pod, and another has it. */
  readonly checkExclusive: (task: VolumeTask, source: VolumeSource) => void;
  /** Content that changed has reached the files. */
  readonly onContent: (event: { readonly plugin: string; readonly delayMs: number }) => void;
  readonly onMount: (mount: MountReport) => void;
}

/** What kind of volume it is, and where its things lie. */
export function identifyVolume(
  { uid, name }: Pick<VolumeTask, "uid" | "name">,
  source: VolumeSource,
  { kinds, places }: Pick<TaskPorts, "kinds" | "places">,
  known?: VolumeKind,
): { readonly kind: VolumeKind; readonly plugin: string; readonly place: VolumePlace } {
  const kind = known ?? kinds.find((candidate) => candidate.matches(source));
  if (kind === undefined) {
    throw new UnresolvedVolumeError(
      `failed to get Plugin from volumeSpec for volume "${name}" err=no volume plugin matched`,
    );
  }
  const plugin = kind.pluginOf?.(source) ?? kind.plugin;
  const isClaim = source.type === "claim";
  const specName = isClaim ? (source.persistent.metadata?.name ?? "") : name;
  const form = isClaim && source.persistent.spec?.volumeMode === "Block" ? "block" : "filesystem";
  return { kind, plugin, place: places.place(uid, plugin, specName, form) };
}

/** How a try to make a volume went, for metrics. */
export interface MountReport {
  readonly plugin: string;
  readonly form: VolumePlace["form"];
  readonly durationMs: number;
  readonly failed: boolean;
}

/** One volume of one pod, and the only one to touch it: makes it, renews it, tries again after a failure. */
export class VolumeTask {
  readonly uid: PodUid;
  readonly name: string;
  readonly key: string;
  readonly #ports: TaskPorts;
  readonly #ending = new AbortController();
  #pod: IdentifiedPod;
  #used: ContainerVolume;
  #state: VolumeState = { step: "waiting" };
  #kind: VolumeKind | undefined;
  #plugin: string | undefined;
  #source: VolumeSource | undefined;
  #place: VolumePlace | undefined;
  #needs: readonly Need[] = [];
  #failures = 0;
  #timer: Timer | undefined;
  #changedAt: number | undefined;
  /** Of the object that the files are made from. */
  #version: string | undefined;
  readonly #looks: PacedLooks<VolumeUsage | undefined>;

  constructor(pod: IdentifiedPod, used: ContainerVolume, ports: TaskPorts) {
    this.uid = pod.metadata.uid as PodUid;
    this.name = used.volume.name;
    this.key = `${this.uid}/${this.name}`;
    this.#pod = pod;
    this.#used = used;
    this.#ports = ports;
    this.#looks = new PacedLooks(ports.clock);
  }

  get state(): VolumeState {
    return this.#state;
  }

  get needs(): readonly Need[] {
    return this.#needs;
  }

  get source(): VolumeSource | undefined {
    return this.#source;
  }

  get version(): string | undefined {
    return this.#version;
  }

  get plugin(): string | undefined {
    return this.#plugin;
  }

  get place(): VolumePlace | undefined {
    return this.#place;
  }

  /** Undefined while it is not mounted, and for kinds that can't tell. */
  async measure(signal: AbortSignal): Promise<MeasuredVolume | undefined> {
    const place = this.#place;
    const measure = this.#kind?.measure;
    if (this.#state.step !== "mounted" || place === undefined || measure === undefined) return undefined;
    const usage = await this.#looks.look((patience) => measure.call(this.#kind, place, patience), signal);
    if (usage === undefined) return undefined;
    const { namespace = "", name = "" } =
      (this.#source?.type === "claim" ? this.#source.claim.metadata : undefined) ?? {};
    return {
      name: this.name,
      usage,
      claim: name === "" ? undefined : { namespace, name },
      isLocalEphemeral: isLocalEphemeral(this.#used.volume),
    };
  }

  /** A new version of the pod, whose labels for instance may be among the content. */
  podChanged(pod: IdentifiedPod, used: ContainerVolume, isRelabelled: boolean): void {
    this.#pod = pod;
    this.#used = used;
    if (this.#kind?.needs !== undefined && isRelabelled) this.contentChanged();
  }

  /** Something the content is made of has changed: try at once, whatever the last failure said. */
  contentChanged(): void {
    this.#changedAt ??= this.#ports.clock.monotonic();
    this.retryNow();
  }

  retryNow(): void {
    this.#failures = 0;
    this.#timer?.cancel();
    this.#ports.wake(this);
  }

  /** No further run begins; one in progress is told to stop. */
  end(): void {
    this.#timer?.cancel();
    this.#looks.end();
    this.#ending.abort(new DOMException("the volume is no longer wanted", "AbortError"));
  }

  get hasEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.hasEnded || signal.aborted) return;
    this.#timer?.cancel();
    using _ = onAbort(signal, () => this.end());
    await this.#try(this.#ending.signal);
  }

  async #try(signal: AbortSignal): Promise<void> {
    const { clock, ledger } = this.#ports;
    const isFirst = this.#state.step !== "mounted";
    const changedAt = this.#changedAt;
    this.#changedAt = undefined;
    const startedAt = clock.monotonic();
    const report = (failed: boolean): void => {
      if (!isFirst || this.#plugin === undefined || this.#place === undefined) return;
      this.#ports.onMount({
        plugin: this.#plugin,
        form: this.#place.form,
        durationMs: clock.monotonic() - startedAt,
        failed,
      });
    };
    const span = isFirst ? ledger.begin(this.uid, "volumes", this.name) : undefined;
    if (isFirst) this.#become({ step: "mounting", since: clock.now(), doing: "" });
    let againAt: number | undefined;
    let version: string | undefined;
    try {
      const { kind, wanted } = await this.#identify(signal);
      const setUp = () =>
        kind.setUp(
          wanted,
          {
            isFirst,
            progress: (doing) => {
              if (this.#state.step === "mounting") this.#become({ ...this.#state, doing });
            },
            madeFrom: (read) => {
              version = read;
            },
            againAt: (time) => {
              againAt = Math.min(againAt ?? time, time);
            },
          },
          signal,
        );
      const result = await (span === undefined ? setUp() : span.within(setUp));
      signal.throwIfAborted();
      span?.end();
      report(false);
      this.#failures = 0;
      this.#version = version;
      const pollAt = this.#nextPoll();
      this.#wakeAt(againAt === undefined ? pollAt : Math.min(againAt, pollAt ?? againAt));
      this.#become({ step: "mounted", result: withGroup(result, wanted.source) });
      if (changedAt !== undefined && result.content === "written") {
        this.#ports.onContent({ plugin: this.#plugin ?? kind.plugin, delayMs: clock.monotonic() - changedAt });
      }
    } catch (error) {
      if (isAbort(error, signal) || signal.aborted) {
        span?.fail("no longer wanted");
        return;
      }
      this.#changedAt ??= changedAt;
      report(true);
      const failure = this.#failed(error);
      span?.fail(failure.message);
    }
  }

  /** Finds out what the volume really is; known for good once it has been mounted. */
  async #identify(signal: AbortSignal): Promise<{ readonly kind: VolumeKind; readonly wanted: WantedVolume }> {
    const { kinds, claims, places } = this.#ports;
    const source = await this.#resolve(signal);
    const { kind, plugin, place } = identifyVolume(this, source, { kinds, places }, this.#kind);
    this.#kind = kind;
    this.#plugin = plugin;
    this.#place = place;
    this.#source = source;
    const wanted: WantedVolume = { ...place, pod: this.#pod, name: this.name, source };
    const before = this.#needs;
    this.#needs = kind.needs?.(wanted) ?? [];
    this.#ports.onNeeds(this, before);
    if (source.type === "claim") {
      checkNodeAffinity(source.persistent, claims?.node());
      if (kind.takesMountOptions !== true && mountOptionsOf(source.persistent).length > 0) {
        throw new StepError("MountOptionSupport check", "mount options are not supported for this volume type");
      }
    }
    this.#ports.checkExclusive(this, source);
    return { kind, wanted };
  }

  /** A claim in use stays what it is, even if the API server is away or says otherwise; but its volume may have grown. */
  async #resolve(signal: AbortSignal): Promise<VolumeSource> {
    const known = this.#state.step === "mounted" ? this.#source : undefined;
    try {
      const source = await resolveSource(this.#pod, this.#used, this.#ports.claims, signal);
      if (known?.type !== "claim" || source.type !== "claim") return source;
      return source.persistent.metadata?.name === known.persistent.metadata?.name ? source : known;
    } catch (error) {
      if (known === undefined || signal.aborted) throw error;
      return known;
    }
  }

  #failed(error: unknown): VolumeFailure {
    const { clock, recordEvent, log } = this.#ports;
    this.#failures++;
    const delayMs = retryDelayMs(this.#failures);
    const nextTryAt = clock.now() + delayMs;
    this.#wakeAt(nextTryAt);
    const isUnresolved = error instanceof UnresolvedVolumeError;
    const step: MountStep = error instanceof StepError ? error.step : "SetUp";
    const isBlock = this.#place?.form === "block";
    const specName = this.#place?.specName ?? this.name;
    const message = isUnresolved
      ? error.message
      : `${isBlock ? "MapVolume" : "MountVolume"}.${failureOf(step)} for volume "${specName}" : ${explain(error)}`;
    // That the cluster has not attached a volume yet is no failure of ours; it is usually on its way.
    const isUnattached = step === "VerifyControllerAttachedVolume" || step === "WaitForAttach";
    if (!isUnresolved && step !== "VerifyControllerAttachedVolume") {
      recordEvent(this.#pod, { type: "Warning", reason: isBlock ? "FailedMapVolume" : "FailedMount", message });
    }
    const { name, namespace } = this.#pod.metadata;
    log.warn("A volume is not available yet", {
      pod: name,
      namespace,
      volume: this.name,
      reason: message,
      retryMs: delayMs,
    });
    const failure = { message, isUnresolved, isUnattached, nextTryAt };
    // A volume in use stays as it is when it can't be renewed.
    if (this.#state.step !== "mounted") this.#become({ step: "failed", failure });
    return failure;
  }

  #nextPoll(): number | undefined {
    const { pollMs, clock, random } = this.#ports;
    if (pollMs === undefined || !this.#needs.some(({ kind }) => kind !== "trustbundles")) return undefined;
    return clock.now() + pollMs * (1 + random() / 2);
  }

  #wakeAt(time: number | undefined): void {
    this.#timer?.cancel();
    if (time === undefined || this.hasEnded) return;
    const { clock } = this.#ports;
    this.#timer = clock.after(time - clock.now(), () => this.#ports.wake(this));
  }

  #become(state: VolumeState): void {
    this.#state = state;
    this.#ports.onState(this);
  }
}

function failureOf(step: MountStep): string {
  return step === "Setup while expanding" ? "Setup failed while expanding volume" : `${step} failed`;
}

function withGroup(
  result: Awaited<ReturnType<VolumeKind["setUp"]>>,
  source: VolumeSource,
): Awaited<ReturnType<VolumeKind["setUp"]>> {
  const group = source.type === "claim" ? groupOf(source.persistent) : undefined;
  return group === undefined ? result : { ...result, groups: [...(result.groups ?? []), group] };
}
