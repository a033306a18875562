import { type ClaimRef, type DraDriver, DraDriverMissing, mostDraDrivers } from "../../../connections/plugins/index.ts";
import {
  aFewAtOnce,
  allEnded,
  type Clock,
  explain,
  isAbort,
  LinkedSignal,
  type Logger,
  mapAtMost,
  messageOf,
  settleAtMost,
  type TaskScope,
  unlessAborted,
} from "../../../ground/base/index.ts";
import {
  type Container,
  type DraResourceClaim,
  type IdentifiedPod,
  type PodLedger,
  type PodUid,
  uidOf,
} from "../../../ground/model/index.ts";
import { FollowingFile, type LastingFiles } from "../following-file.ts";
import { decodeClaimFile, encodeClaimFile } from "./claim-file.ts";
import { type ContainerClaim, cdiDevicesFor, claimsOfContainer } from "./claim-grants.ts";
import {
  type ClaimRecord,
  type ClaimState,
  claimKey,
  claimsOfPod,
  noClaims,
  withDevices,
  withoutClaims,
  withoutUser,
  withUser,
} from "./claim-state.ts";
import { DriverCalls } from "./driver-calls.ts";
import { ClaimNotReady, claimsNamedBy, driversOfClaim, type NamedClaim, type PodClaimSettings } from "./pod-claims.ts";

export interface ClaimManagerPorts {
  /** Owns what drivers are asked for: a call goes on when its pod is given up. */
  readonly scope: TaskScope;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly settings: PodClaimSettings;
  /** Throws DraDriverMissing. */
  readonly driver: (name: string) => DraDriver;
  /** As the API server has it now. */
  readonly getClaim: (namespace: string, name: string, signal: AbortSignal) => Promise<DraResourceClaim>;
  /** The list of claims that are in use, in the kubelet's form. */
  readonly path: string;
  readonly files: LastingFiles;
  /** What the pod waits for has come. */
  readonly onChange: (uid: PodUid) => void;
  readonly onOperation?: (operation: "PrepareResources" | "UnprepareResources", ok: boolean, ms: number) => void;
  readonly onCall?: (driver: string, method: string, code: string, ms: number) => void;
}

/** The claims of a pod can't be prepared now, or not given back. The message is what users know. */
export class ClaimError extends Error {
  override readonly name = "ClaimError";
  readonly reason: "FailedPrepareDynamicResources" | "FailedUnprepareDynamicResources";

  constructor(reason: ClaimError["reason"], cause: unknown) {
    const what = reason === "FailedPrepareDynamicResources" ? "prepare" : "unprepare";
    super(`${what} dynamic resources: ${messageOf(cause)}`, { cause });
    this.reason = reason;
  }
}

const adoptEveryMs = 60_000;

function throwFirst(results: readonly PromiseSettledResult<void>[]): void {
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

function addTo(batches: Map<string, ClaimRef[]>, driver: string, claim: ClaimRef): void {
  const batch = batches.get(driver);
  if (batch === undefined) batches.set(driver, [claim]);
  else batch.push(claim);
}

/** A claim as the API server has it, and who has a part in it. */
interface CheckedClaim extends Omit<ClaimRecord, "pods"> {
  readonly key: string;
}

/**
 * Which claims pods of this node use. A claim is noted on disk before a driver hears of it and forgotten after every
 * driver has given it back, so that whoever dies in between leaves nothing that the next one can't find. Everything goes
 * by the pods that are noted, never by names that would have to be looked up again.
 */
export class ClaimManager {
  readonly #ports: ClaimManagerPorts;
  readonly #file: FollowingFile;
  readonly #calls: DriverCalls;
  #state: ClaimState = noClaims;
  /** Claims that this run of the agent has seen prepared, with the drivers that did: others are prepared again. */
  readonly #prepared = new Map<string, Set<string>>();
  /** Claims that are being given back: nobody may begin to use them. */
  readonly #unpreparing = new Set<string>();
  readonly #releases = new Map<PodUid, Promise<void>>();
  /** When running pods whose claims are not known are looked after again. */
  readonly #adoptAt = new Map<PodUid, number>();
  readonly #adopting = new Map<PodUid, LinkedSignal>();
  /** The last write of the list has failed. */
  #isBehind = false;
  /** Who waits for a driver to register. */
  readonly #waiting = new Map<string, Set<PodUid>>();

  constructor(ports: ClaimManagerPorts) {
    this.#ports = ports;
    this.#file = new FollowingFile(ports.path, ports.files, () => encodeClaimFile(this.#state));
    this.#calls = new DriverCalls(ports);
  }

  get state(): ClaimState {
    return this.#state;
  }

  isPrepared(key: string): boolean {
    const drivers = this.#state.get(key)?.drivers;
    return drivers !== undefined && this.#unprepared(key, [...drivers.keys()]).length === 0;
  }

  /** What an earlier run of this agent, or of another, has left. Rejects where it can't be read, or not be kept. */
  async load(): Promise<void> {
    const text = await this.#file.read();
    if (text !== undefined) await this.#take(text);
    await this.#file.save();
  }

  /** A file that is spoilt is set aside: pods that run have their claims noted again by `keep`. */
  async #take(text: string): Promise<void> {
    const { files, path, log } = this.#ports;
    try {
      this.#state = decodeClaimFile(text);
    } catch (error) {
      const aside = `${path}.spoilt`;
      await files.save(aside, text);
      log.error("The list of resource claims in use is damaged; it is set aside and a new one is begun", error, {
        aside,
      });
    }
  }

  /** Whether the pod has claims that are not given back. */
  holds(uid: PodUid): boolean {
    return claimsOfPod(this.#state, uid).length > 0;
  }

  /** Pods that are noted with a claim. */
  pods(): ReadonlySet<PodUid> {
    return new Set([...this.#state.values()].flatMap(({ pods }) => [...pods]));
  }

  /** A plugin of the driver has come. */
  registered(driver: string): void {
    const waiting = this.#waiting.get(driver) ?? [];
    this.#waiting.delete(driver);
    for (const uid of waiting) this.#ports.onChange(uid);
  }

  forget(uid: PodUid): void {
    this.#adoptAt.delete(uid);
    for (const [driver, waiting] of this.#waiting) {
      waiting.delete(uid);
      if (waiting.size === 0) this.#waiting.delete(driver);
    }
  }

  /**
   * Has the pod's claims prepared. Rejects with ClaimError. A pod that has its sandbox has them already, wherever the
   * API server and the drivers are now; one that had it, before the node was started anew, needs the drivers only.
   */
  async prepare(pod: IdentifiedPod, hasSandbox: boolean, signal: AbortSignal): Promise<void> {
    if (!this.#mayHaveClaims(pod)) return;
    const areNoted = this.#areNoted(pod, hasSandbox);
    if (areNoted && (hasSandbox || !this.#isBehind)) return;
    await this.#measured("PrepareResources", "FailedPrepareDynamicResources", signal, uidOf(pod), async () => {
      // What the drivers said must outlive the agent before a container is made with it.
      if (areNoted) return this.#save("state");
      const checked = await this.#check(pod, signal);
      signal.throwIfAborted();
      await this.#note(uidOf(pod), checked);
      signal.throwIfAborted();
      await this.#haveThemPrepared(uidOf(pod), checked, signal);
      await this.#save("state");
    });
  }

  /** The pod runs: claims of it that are not known here, because the list of them was lost, are noted again. */
  keep(pod: IdentifiedPod): void {
    const { scope, clock, log } = this.#ports;
    const uid = uidOf(pod);
    const dueAt = this.#adoptAt.get(uid) ?? 0;
    if (!this.#mayHaveClaims(pod) || this.#areNoted(pod, true) || clock.monotonic() < dueAt) return;
    this.#adoptAt.set(uid, clock.monotonic() + adoptEveryMs);
    scope.spawn("claims of a running pod", async (ofAgent) => {
      using life = new LinkedSignal(ofAgent);
      this.#adopting.set(uid, life);
      try {
        await this.prepare(pod, true, life.signal);
      } catch (error) {
        if (life.signal.aborted) return;
        log.warn("Claims of a running pod are not known, and could not be found out yet", {
          uid,
          err: messageOf(error),
        });
      } finally {
        if (this.#adopting.get(uid) === life) this.#adopting.delete(uid);
      }
    });
  }

  /** Gives back what only this pod uses. Rejects with ClaimError; the pod then still holds it. */
  async release(uid: PodUid, signal: AbortSignal): Promise<void> {
    // Else its claims could be prepared after everybody was told that it has ended.
    this.#adopting.get(uid)?.abort(new DOMException("the pod ends", "AbortError"));
    if (!this.holds(uid)) return;
    let release = this.#releases.get(uid);
    if (release === undefined) {
      // Whoever asks may be given up, for another try; what a driver was asked for goes on.
      release = this.#measured("UnprepareResources", "FailedUnprepareDynamicResources", signal, uid, () =>
        this.#release(uid),
      ).finally(() => this.#releases.delete(uid));
      this.#releases.set(uid, release);
    }
    await unlessAborted(release, signal);
  }

  /** Names of CDI devices for a container that is about to be made. Throws where its claims are not known. */
  cdiDevicesFor(pod: IdentifiedPod, container: Container): readonly string[] {
    return cdiDevicesFor(this.#state, pod, container, this.#ports.settings);
  }

  /** What is known of the container's claims; nothing where they can't be told. */
  claimsOf(pod: IdentifiedPod, container: Container): readonly ContainerClaim[] {
    try {
      return claimsOfContainer(this.#state, pod, container, this.#ports.settings);
    } catch {
      return [];
    }
  }

  #mayHaveClaims({ spec, status }: IdentifiedPod): boolean {
    return (spec.resourceClaims ?? []).length > 0 || status?.extendedResourceClaimStatus !== undefined;
  }

  /** Whether the pod has all its claims: for certain, or at least when it was started. */
  #areNoted(pod: IdentifiedPod, hasSandbox: boolean): boolean {
    try {
      return claimsNamedBy(pod, this.#ports.settings).every(({ name }) => {
        const key = claimKey({ namespace: pod.metadata.namespace, name });
        if (this.#state.get(key)?.pods.has(uidOf(pod)) !== true) return false;
        return this.isPrepared(key) || (hasSandbox && this.#isDescribed(key));
      });
    } catch (error) {
      if (error instanceof ClaimNotReady) return false;
      throw error;
    }
  }

  /** Every driver has said what it gives. One that has not may have been asked by an agent that died before its answer. */
  #isDescribed(key: string): boolean {
    return [...(this.#state.get(key)?.drivers ?? [])].every(
      ([driver, devices]) => devices.length > 0 || this.#prepared.get(key)?.has(driver) === true,
    );
  }

  /** All that must be so before anything is noted: a pod that fails here can be deleted at once. */
  async #check(pod: IdentifiedPod, signal: AbortSignal): Promise<readonly CheckedClaim[]> {
    const { namespace } = pod.metadata;
    const named = claimsNamedBy(pod, this.#ports.settings);
    const checked = await mapAtMost(aFewAtOnce, named, async (claim) => {
      const key = claimKey({ namespace, name: claim.name });
      const noted = this.#state.get(key);
      if (noted?.pods.has(uidOf(pod)) === true) return { ...noted, key };
      return { ...(await this.#fetch(pod, claim, signal)), key };
    });
    for (const { drivers } of checked) for (const driver of drivers.keys()) this.#ports.driver(driver);
    // Two entries of a pod may name one claim.
    return [...new Map(checked.map((claim) => [claim.key, claim])).values()];
  }

  async #fetch(pod: IdentifiedPod, claim: NamedClaim, signal: AbortSignal): Promise<Omit<ClaimRecord, "pods">> {
    const { name } = claim;
    const { namespace } = pod.metadata;
    try {
      const object = await this.#ports.getClaim(namespace, name, signal);
      const drivers = driversOfClaim(pod, claim, object);
      return { uid: object.metadata?.uid ?? "", name, namespace, drivers: new Map(drivers.map((each) => [each, []])) };
    } catch (error) {
      if (isAbort(error, signal) || error instanceof ClaimNotReady) throw error;
      throw new Error(`fetch ResourceClaim ${name}: ${explain(error)}`, { cause: error });
    }
  }

  /** Resolves when it would outlive the agent that the pod uses the claims. */
  async #note(uid: PodUid, checked: readonly CheckedClaim[]): Promise<void> {
    for (const claim of checked) {
      const known = this.#state.get(claim.key);
      if (this.#unpreparing.has(claim.key)) throw new ClaimNotReady(`ResourceClaim ${claim.name} is being unprepared`);
      if (known !== undefined && known.uid !== claim.uid) {
        const old = `old ResourceClaim with same name ${claim.name} and different UID ${known.uid} still exists`;
        throw new ClaimNotReady(`${old} (previous pod force-deleted?!)`);
      }
    }
    const claims = checked.map(({ key: _, ...claim }) => claim);
    this.#state = withUser(this.#state, claims, uid);
    await this.#save("cache");
  }

  async #haveThemPrepared(uid: PodUid, checked: readonly CheckedClaim[], signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const batches = new Map<string, ClaimRef[]>();
      const others: Promise<unknown>[] = [];
      for (const { key, name, namespace, uid: claimUid, drivers } of checked) {
        for (const driver of this.#unprepared(key, [...drivers.keys()])) {
          const underWay = this.#calls.underWay(key, driver);
          if (underWay === undefined) addTo(batches, driver, { namespace, name, uid: claimUid });
          else others.push(underWay);
        }
      }
      if (batches.size === 0 && others.length === 0) return;
      // All of them at once, so that whoever shares a claim sees that its drivers are at it.
      const own = settleAtMost(mostDraDrivers, batches, ([driver, claims]) => this.#prepareBatch(uid, driver, claims));
      throwFirst(await unlessAborted(own, signal));
      // Where they fail, it is tried once more here, to hear why.
      await unlessAborted(allEnded(others), signal);
    }
  }

  #prepareBatch(uid: PodUid, driver: string, claims: readonly ClaimRef[]): Promise<void> {
    return this.#calls.run("NodePrepareResources", { uid, driver, claims }, (done) => {
      const said = new Map([...done].map(([claim, { devices }]) => [claimKey(claim), devices]));
      this.#state = withDevices(this.#state, driver, said);
      for (const key of said.keys()) this.#prepared.set(key, (this.#prepared.get(key) ?? new Set()).add(driver));
    });
  }

  #unprepared(key: string, drivers: readonly string[]): readonly string[] {
    return drivers.filter((driver) => this.#prepared.get(key)?.has(driver) !== true);
  }

  async #release(uid: PodUid): Promise<void> {
    const own = claimsOfPod(this.#state, uid);
    const last = own.filter(({ pods }) => pods.size === 1);
    const shared = own.filter(({ pods }) => pods.size > 1);
    this.#state = withoutUser(this.#state, shared, uid);
    for (const claim of last) this.#unpreparing.add(claimKey(claim));
    try {
      await this.#haveThemUnprepared(uid, last);
    } finally {
      for (const claim of last) this.#unpreparing.delete(claimKey(claim));
      await this.#save("state");
    }
  }

  async #haveThemUnprepared(uid: PodUid, claims: readonly ClaimRecord[]): Promise<void> {
    await allEnded(
      claims.flatMap((claim) =>
        [...claim.drivers.keys()].map((driver) => this.#calls.underWay(claimKey(claim), driver)),
      ),
    );
    // From here on it is not known what there is of them; not before, since a call that was under way may have added to it.
    for (const claim of claims) this.#prepared.delete(claimKey(claim));
    const batches = new Map<string, ClaimRef[]>();
    const left = new Map<string, Set<string>>();
    for (const { name, namespace, uid: claimUid, drivers } of claims) {
      left.set(claimKey({ namespace, name }), new Set(drivers.keys()));
      for (const driver of drivers.keys()) addTo(batches, driver, { namespace, name, uid: claimUid });
    }
    const results = await settleAtMost(mostDraDrivers, batches, ([driver, refs]) =>
      this.#calls.run("NodeUnprepareResources", { uid, driver, claims: refs }, (done) => {
        for (const claim of done.keys()) left.get(claimKey(claim))?.delete(driver);
      }),
    );
    const gone = [...left].filter(([, drivers]) => drivers.size === 0).map(([key]) => key);
    this.#state = withoutClaims(this.#state, gone);
    throwFirst(results);
  }

  async #save(what: "cache" | "state"): Promise<void> {
    try {
      await this.#file.save();
      this.#isBehind = false;
    } catch (error) {
      this.#isBehind = true;
      throw new Error(`checkpoint ResourceClaim ${what}: ${explain(error)}`, { cause: error });
    }
  }

  async #measured(
    operation: "PrepareResources" | "UnprepareResources",
    reason: ClaimError["reason"],
    signal: AbortSignal,
    uid: PodUid,
    work: () => Promise<void>,
  ): Promise<void> {
    const { clock, onOperation } = this.#ports;
    const began = clock.monotonic();
    let ok = false;
    try {
      await work();
      ok = true;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      if (error instanceof DraDriverMissing) this.#awaitDriver(error.driver, uid);
      throw new ClaimError(reason, error);
    } finally {
      onOperation?.(operation, ok, clock.monotonic() - began);
    }
  }

  #awaitDriver(driver: string, uid: PodUid): void {
    this.#waiting.set(driver, (this.#waiting.get(driver) ?? new Set()).add(uid));
  }
}
