import type { DevicePluginOptions, ListedDevice, PreferenceQuery } from "../../../connections/plugins/index.ts";
import { type Clock, isAbort, isShortage, type Logger, messageOf, type Timer } from "../../../ground/base/index.ts";
import {
  type Container,
  containersOf,
  type DeviceAmounts,
  type IdentifiedPod,
  type PodUid,
  type ResourceStatus,
  uidOf,
} from "../../../ground/model/index.ts";
import type { DeviceGrants } from "../../runtime/index.ts";
import { FollowingFile, type LastingFiles } from "../following-file.ts";
import { chooseDevices, DevicesLacking } from "./choose-devices.ts";
import { decodeDeviceFile, encodeDeviceFile } from "./device-file.ts";
import { awaitPluginMs, DeviceInventory, devicesOf } from "./device-inventory.ts";
import { mergeResponses } from "./device-response.ts";
import {
  amountsInUse,
  type DeviceGrant,
  type DeviceState,
  devicesInUse,
  type GrantPlace,
  grantAt,
  grantsIn,
  nobody,
  withGrant,
  withoutDevicesOf,
} from "./device-state.ts";
import { wantedDevices } from "./wanted-devices.ts";

/** Port: the plugin of a resource, as it is registered now. */
export interface AskedPlugin {
  readonly options: DevicePluginOptions;
  readonly client: {
    allocate(ids: readonly string[], signal: AbortSignal): Promise<Uint8Array>;
    preferred(query: PreferenceQuery, signal: AbortSignal): Promise<readonly string[]>;
    preStart(ids: readonly string[], signal: AbortSignal): Promise<void>;
  };
}

export interface DeviceManagerPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined: none is registered. */
  readonly plugin: (resource: string) => AskedPlugin | undefined;
  /** The list of who has what, and of what plugins offer, in the kubelet's form. */
  readonly path: string;
  readonly files: LastingFiles;
  /** Pods that wait for devices can be decided about again. */
  readonly onDecidable: () => void;
  /** Containers of the pod that waited for a plugin to come can be tried again. */
  readonly onStartable: (uid: PodUid) => void;
  /** The health of a device that the pod has may be another. */
  readonly onHealth: (uid: PodUid) => void;
  /** What the Node says of devices has changed. */
  readonly onAmounts: () => void;
  readonly onAllocated?: (resource: string, durationMs: number) => void;
}

/** The plugin of this resource is not there, and may come. */
export class PluginAwaited extends Error {
  override readonly name = "PluginAwaited";
  /** What is waited for. */
  readonly what: string;

  constructor(resource: string) {
    const minutes = awaitPluginMs / 60_000;
    const what = `the device plugin of ${resource} to register, for ${minutes} minutes since it left or the agent started`;
    super(`waiting for ${what}`);
    this.what = what;
  }
}

const saveRetryMs = 5_000;

/** What there is, and who has it. */
interface KnownDevices {
  readonly inventory: DeviceInventory;
  readonly state: DeviceState;
}

const noFiles: LastingFiles = { read: async () => undefined, save: async () => {} };

/**
 * Which devices the containers of this node have. They are chosen when a pod comes, kept on disk once their plugin has
 * said how they are used, and belong to the pod until nothing of it runs.
 */
export class DeviceManager {
  readonly #ports: DeviceManagerPorts;
  readonly #startedAt: number;
  readonly #inventory: DeviceInventory;
  readonly #file: FollowingFile;
  #state: DeviceState;
  #giveUp: Timer | undefined;
  /** Resources whose plugin, when it was last there, wanted to be told before each start of a container. */
  readonly #preStarted = new Set<string>();
  /** Pods with containers that can't be made before the plugin of a resource has come. */
  readonly #awaiting = new Map<string, Set<PodUid>>();

  constructor(ports: DeviceManagerPorts, known: KnownDevices = { inventory: new DeviceInventory(), state: nobody }) {
    this.#ports = ports;
    this.#inventory = known.inventory;
    this.#state = known.state;
    this.#startedAt = ports.clock.monotonic();
    const content = (): string => encodeDeviceFile(this.#state, this.#inventory.registered());
    this.#file = new FollowingFile(ports.path, ports.files, content);
  }

  /** One that gives out the same devices, of which nobody hears and nothing is saved. */
  onTrial(): DeviceManager {
    const { clock, log, plugin, path } = this.#ports;
    const nobodyHears = { onDecidable() {}, onStartable() {}, onHealth() {}, onAmounts() {} };
    const ports = { clock, log, plugin, path, files: noFiles, ...nobodyHears };
    return new DeviceManager(ports, { inventory: this.#inventory, state: this.#state });
  }

  get state(): DeviceState {
    return this.#state;
  }

  get inventory(): Pick<DeviceInventory, "get" | "healthy" | "names"> {
    return this.#inventory;
  }

  /**
   * What an earlier run of this agent, or of another, has left. A spoilt file keeps nobody from starting: it is set aside,
   * and what can be read in it is believed, since who is said to have a device loses nothing by it, and who runs with one
   * that is given to others does. Throws while the machine lacks what it takes to read it, for the same reason.
   */
  async load(): Promise<void> {
    const { log, clock } = this.#ports;
    let text: string | undefined;
    try {
      text = await this.#file.read();
      if (text === undefined) return;
      const { state, resources, isWhole, unreadable } = decodeDeviceFile(text);
      if (!isWhole)
        await this.#setAside(text, "believed as far as it can be read", new Error("checkpoint is corrupted"));
      this.#state = state;
      for (const name of [...resources, ...amountsInUse(state).keys()]) this.#inventory.expect(name, clock.monotonic());
      if (unreadable.length > 0)
        log.warn("Some devices are given to nobody any more", { unreadable: unreadable.slice(0, 20) });
      this.#giveUpLater();
    } catch (error) {
      if (isShortage(error)) throw error;
      await this.#setAside(text, "begun anew", error);
    }
  }

  async #setAside(text: string | undefined, whatNow: string, problem: unknown): Promise<void> {
    const { log, files, path } = this.#ports;
    const aside = `${path}.spoilt`;
    const said = "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date";
    log.error(said, problem, { aside, whatNow });
    try {
      if (text !== undefined) await files.save(aside, text);
    } catch (error) {
      log.warn("The spoilt list of devices could not be kept", { aside, err: messageOf(error) });
    }
  }

  registered(resource: string): void {
    if (this.#ports.plugin(resource)?.options.preStartRequired === true) this.#preStarted.add(resource);
    else this.#preStarted.delete(resource);
    this.#inventory.expect(resource, this.#ports.clock.monotonic());
    this.#giveUpLater();
  }

  listed(resource: string, devices: readonly ListedDevice[]): void {
    const changed = this.#inventory.list(resource, devices);
    this.#tellAwaiting(resource);
    if (changed.size === 0) return;
    this.#tellHealth(resource, changed);
    this.#saveSoon();
    this.#ports.onAmounts();
    this.#ports.onDecidable();
  }

  lost(resource: string): void {
    const { clock } = this.#ports;
    this.#inventory.lose(resource, clock.monotonic());
    this.#tellHealth(resource, undefined);
    this.#giveUpLater();
    this.#ports.onAmounts();
    this.#ports.onDecidable();
  }

  /** Counts for the Node's status. */
  amounts(): DeviceAmounts {
    return this.#inventory.amounts();
  }

  /** Counts by which pods are admitted: who has a device that is out of order, or whose plugin is away, keeps it. */
  admissibleAmounts(): DeviceAmounts {
    const amounts = this.amounts();
    const allocatable = new Map(amounts.allocatable);
    for (const [resource, used] of amountsInUse(this.#state)) {
      if (allocatable.has(resource)) allocatable.set(resource, Math.max(used, allocatable.get(resource) ?? 0));
    }
    return { ...amounts, allocatable };
  }

  /** All that could be given, in use or not, with where they lie. */
  healthyDevices(): readonly { readonly resource: string; readonly byNode: DeviceGrant["byNode"] }[] {
    return this.#inventory.names.map((resource) => {
      const healthy = this.#inventory.healthy(resource);
      return { resource, byNode: byNode([...healthy.keys()].sort(), healthy) };
    });
  }

  /** How the devices of a container are, as their plugins last said. */
  healthOf(uid: PodUid, container: string): readonly ResourceStatus[] {
    return [...(this.#state.get(uid)?.get(container) ?? [])].map(([name, { ids }]) => {
      const known = devicesOf(this.#inventory.get(name));
      return { name, resources: ids.map((resourceID) => ({ resourceID, health: healthText(known.get(resourceID)) })) };
    });
  }

  /** Devices of pods that are gone are for others again. */
  retain(holds: (uid: PodUid) => boolean): void {
    const gone = [...this.#state.keys()].filter((uid) => !holds(uid));
    if (gone.length > 0) this.#become(gone.reduce(withoutDevicesOf, this.#state));
  }

  forget(uid: PodUid): void {
    this.#become(withoutDevicesOf(this.#state, uid));
  }

  /** Does what would change who has which devices, without that. */
  keepingDevices(change: () => void): void {
    const kept = this.#state;
    change();
    this.#become(kept);
  }

  mark(): () => void {
    const before = this.#state;
    return () => this.#become(before);
  }

  /** Resources of the container that plugins offer or somebody has: others are none of ours. */
  wanted(container: Container): ReadonlyMap<string, number> {
    const wanted = wantedDevices(container);
    if (wanted.size === 0) return wanted;
    const used = amountsInUse(this.#state);
    return new Map([...wanted].filter(([name]) => this.#inventory.get(name) !== undefined || used.has(name)));
  }

  /**
   * Chooses devices for the container where it has none, on the given NUMA nodes if it can be. Throws PluginAwaited,
   * PreferenceNeeded, or DevicesLacking with the text that users know.
   */
  choose(
    pod: IdentifiedPod,
    container: Container,
    nodes: ReadonlySet<number> | undefined,
    preferred: (resource: string, query: PreferenceQuery) => readonly string[] | undefined,
  ): void {
    for (const [resource, count] of this.wanted(container)) {
      const place = { uid: uidOf(pod), container: container.name, resource };
      const held = grantAt(this.#state, place);
      if (held !== undefined && held.ids.length !== count) {
        const change = `changed request for resource "${resource}" from ${held.ids.length} to ${count}`;
        throw new DevicesLacking(`pod "${place.uid}" container "${container.name}" ${change}`);
      }
      // What its plugin has yet to answer for was healthy a moment ago.
      if (held !== undefined && held.response === undefined) continue;
      const healthy = this.#healthy(resource);
      if (held !== undefined) {
        if (held.ids.every((id) => healthy.has(id))) continue;
        const why = "previously allocated devices are no longer healthy";
        throw new DevicesLacking(`${why}; cannot allocate unhealthy devices ${resource}`);
      }
      const ids = chooseDevices({
        resource,
        count,
        healthy,
        inUse: devicesInUse(this.#state, resource),
        reusable: this.reusable(pod, resource),
        nodes,
        preferred: (query) =>
          this.#ports.plugin(resource)?.options.givesPreferences === true ? preferred(resource, query) : [],
      });
      const all = devicesOf(this.#inventory.get(resource));
      this.#become(withGrant(this.#state, place, { ids, byNode: byNode(ids, all), response: undefined }));
    }
  }

  /** Healthy, and nobody's. Throws as `choose` does. */
  available(resource: string): ReadonlySet<string> {
    const inUse = devicesInUse(this.#state, resource);
    return new Set([...this.#healthy(resource).keys()].filter((id) => !inUse.has(id)));
  }

  /** Devices of init containers, which have ended when the others start; a sidecar has not. */
  reusable(pod: IdentifiedPod, resource: string): ReadonlySet<string> {
    const ended = new Set<string>();
    const running = new Set<string>();
    for (const { kind, container } of containersOf(pod)) {
      const own = grantAt(this.#state, { uid: uidOf(pod), container: container.name, resource });
      for (const id of own?.ids ?? []) (kind === "init" ? ended : running).add(id);
    }
    return new Set([...ended].filter((id) => !running.has(id)));
  }

  /** Grants of the pod whose plugin has yet to say how they are used. */
  unanswered(uid: PodUid): readonly GrantPlace[] {
    return [...grantsIn(this.#state)].filter((one) => one.uid === uid && one.grant.response === undefined);
  }

  /** Asks the plugin how the container gets its devices. Rejects with what the plugin says against it. */
  async answer(place: GrantPlace, signal: AbortSignal): Promise<void> {
    const grant = grantAt(this.#state, place);
    if (grant === undefined || grant.response !== undefined) return;
    const { clock, onAllocated } = this.#ports;
    const plugin = this.#ports.plugin(place.resource);
    if (plugin === undefined) throw new DevicesLacking(`the device plugin of ${place.resource} has left`);
    const began = clock.monotonic();
    const response = await plugin.client.allocate(grant.ids, signal);
    onAllocated?.(place.resource, clock.monotonic() - began);
    // The pod may have gone meanwhile, and its devices to others.
    if (grantAt(this.#state, place) === grant) this.#become(withGrant(this.#state, place, { ...grant, response }));
  }

  /** Resolves when who has what would outlive the agent; tries as long as it takes. */
  async saved(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#file.save();
        return;
      } catch (error) {
        this.#ports.log.error("Could not save who has which devices; their pods wait", error);
        await this.#ports.clock.sleep(saveRetryMs, signal);
      }
    }
  }

  /** What a container that is about to be made gets of its devices. Rejects while it can't have them. */
  async grantsFor(pod: IdentifiedPod, container: Container, signal: AbortSignal): Promise<DeviceGrants> {
    const uid = uidOf(pod);
    const responses: [string, Uint8Array][] = [];
    for (const resource of this.wanted(container).keys()) {
      const place = { uid, container: container.name, resource };
      const grant = this.#awaitedGrant(pod, container, place);
      if (grant.response === undefined) {
        await this.answer(place, signal);
        await this.saved(signal);
      }
      await this.#preStart(resource, grant, signal);
      const { response } = grantAt(this.#state, place) ?? {};
      if (response === undefined) throw new DevicesLacking(`the devices of ${resource} went to others meanwhile`);
      responses.push([resource, response]);
    }
    return mergeResponses(responses, (resource, what) => {
      this.#ports.log.warn("Two device plugins give a container different things; the first one's holds", {
        resource,
        what,
      });
    });
  }

  /** What the container was given; where its plugin has to come first, whoever waits is told when it has. */
  #awaitedGrant(pod: IdentifiedPod, container: Container, place: GrantPlace): DeviceGrant {
    const { uid, resource } = place;
    try {
      this.#awaitAfterStart(resource);
      return grantAt(this.#state, place) ?? this.#late(pod, container, place);
    } catch (error) {
      if (error instanceof PluginAwaited) {
        this.#awaiting.set(resource, (this.#awaiting.get(resource) ?? new Set()).add(uid));
      }
      throw error;
    }
  }

  #tellAwaiting(resource: string): void {
    const uids = this.#awaiting.get(resource) ?? [];
    this.#awaiting.delete(resource);
    for (const uid of uids) this.#ports.onStartable(uid);
  }

  /** The pod was taken as it ran, and what it had is not known any more. */
  #late(pod: IdentifiedPod, container: Container, place: GrantPlace): DeviceGrant {
    this.choose(pod, container, undefined, () => []);
    const grant = grantAt(this.#state, place);
    if (grant === undefined) {
      const { uid, container: name, resource } = place;
      throw new DevicesLacking(
        `no devices found allocated in local cache for pod ${uid}, container ${name}, resource ${resource}`,
      );
    }
    return grant;
  }

  async #preStart(resource: string, { ids }: DeviceGrant, signal: AbortSignal): Promise<void> {
    if (!this.#preStarted.has(resource)) return;
    try {
      const plugin = this.#ports.plugin(resource);
      if (plugin === undefined) throw new Error("the plugin has left");
      await plugin.client.preStart(ids, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      throw new Error(`device plugin PreStartContainer rpc failed with err: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Until its plugin has come, the machine may have started with other devices, or with none yet. */
  #awaitAfterStart(resource: string): void {
    const { clock } = this.#ports;
    if (this.#inventory.hasMet(resource)) return;
    const leftMs = this.#startedAt + awaitPluginMs - clock.monotonic();
    if (leftMs > 0) throw new PluginAwaited(resource);
  }

  #healthy(resource: string): ReadonlyMap<string, ListedDevice> {
    const known = this.#inventory.get(resource);
    if (known === undefined || known.step === "removed") {
      throw new DevicesLacking(`cannot allocate unregistered device ${resource}`);
    }
    if (known.step === "awaited") throw new PluginAwaited(resource);
    const healthy = this.#inventory.healthy(resource);
    if (healthy.size > 0) return healthy;
    throw new DevicesLacking(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
  }

  /** Plugins that do not come are given up, each in its own time. */
  #giveUpLater(): void {
    const { clock } = this.#ports;
    this.#giveUp?.cancel();
    const since = this.#inventory.awaitedSince();
    if (since === undefined) return;
    this.#giveUp = clock.after(since + awaitPluginMs - clock.monotonic(), () => {
      if (this.#inventory.giveUp(clock.monotonic())) {
        for (const resource of [...this.#awaiting.keys()]) {
          if (this.#inventory.get(resource)?.step === "removed") this.#tellAwaiting(resource);
        }
        this.#saveSoon();
        this.#ports.onAmounts();
        this.#ports.onDecidable();
      }
      this.#giveUpLater();
    });
  }

  #tellHealth(resource: string, changed: ReadonlySet<string> | undefined): void {
    const uids = new Set<PodUid>();
    for (const { uid, resource: of, grant } of grantsIn(this.#state)) {
      if (of === resource && (changed === undefined || grant.ids.some((id) => changed.has(id)))) uids.add(uid);
    }
    for (const uid of uids) this.#ports.onHealth(uid);
  }

  #become(state: DeviceState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#saveSoon();
  }

  #saveSoon(): void {
    this.#file.save().catch((error: unknown) => {
      this.#ports.log.error("Could not save who has which devices; the next change is another try", error);
    });
  }
}

function healthText(device: ListedDevice | undefined): string {
  if (device === undefined) return "Unknown";
  return device.isHealthy ? "Healthy" : "Unhealthy";
}

function byNode(
  chosen: readonly string[],
  devices: ReadonlyMap<string, ListedDevice>,
): ReadonlyMap<number, readonly string[]> {
  const nodes = new Map<number, string[]>();
  for (const id of chosen) {
    const of = devices.get(id)?.numaNodes ?? [];
    for (const node of of.length === 0 ? [-1] : of) {
      const ids = nodes.get(node);
      if (ids === undefined) nodes.set(node, [id]);
      else ids.push(id);
    }
  }
  return nodes;
}
