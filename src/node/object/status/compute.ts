import { type Clock, isAbort, type Logger } from "../../../ground/base/index.ts";
import {
  allocatableOf,
  apiTime,
  capacityOf,
  type Node,
  type NodeAddress,
  type NodeCondition,
  type NodeStatus,
  type RecordNodeEvent,
} from "../../../ground/model/index.ts";
import { cloudLabelNames, cloudLabels } from "../cloud-labels.ts";
import type { NodeCloud, NodeFacts } from "../ports.ts";
import type { NodeSettings } from "../settings.ts";
import { findAddresses } from "./addresses.ts";
import { cloudAddresses } from "./cloud-addresses.ts";
import { type ConditionContext, pressureCondition, pressures, statusEvent } from "./conditions.ts";
import { nodeInfoOf } from "./node-info.ts";
import { ownAnnotations } from "./own-annotations.ts";
import { notReadyBecause, readyCondition } from "./ready-condition.ts";

export interface StatusPorts {
  readonly facts: NodeFacts;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordEvent: RecordNodeEvent;
  /** Why volumes of the CSI kind cannot be used yet. */
  readonly storageProblem: () => string | undefined;
}

// Looking up one's own name may ask a server far away; addresses seldom change.
const addressesFreshMs = 60_000;

/** Labels that are put right with every report. */
const repaired: ReadonlySet<string> = new Set(["kubernetes.io/os", "kubernetes.io/arch", ...cloudLabelNames]);

/** Computes the node's status from the facts, and remembers what must be told only once. */
export class StatusComputer {
  readonly #settings: NodeSettings;
  readonly #ports: StatusPorts;
  #addresses: { readonly found: readonly NodeAddress[]; readonly at: number } | undefined;
  #rebootTold = false;
  #unschedulable: boolean | undefined;

  constructor(settings: NodeSettings, ports: StatusPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  /** The node with the status it has now; what others wrote into the status stays. */
  async compute(node: Node, signal: AbortSignal): Promise<Node> {
    const { facts, clock, recordEvent } = this.#ports;
    const { nodeName, port, kubeletVersion, declaredFeatures } = this.#settings;
    const present = node.status ?? {};
    const runtime = facts.runtime();
    const devices = facts.devices();
    const [addresses, rootFilesystemBytes, images] = await Promise.all([
      this.#findAddresses(present.addresses ?? [], signal),
      this.#try("root filesystem", facts.rootFilesystemBytes(), signal),
      this.#try("images", facts.images(signal), signal),
    ]);
    this.#tellOfReboot(present.nodeInfo?.bootID);
    const capacity = capacityOf(this.#settings, { ...facts, devices }, rootFilesystemBytes, present.capacity ?? {});
    const context: ConditionContext = { nodeName, now: apiTime(clock.now()), recordEvent };
    const volumesInUse = facts.volumesInUse();
    const config = facts.config?.();
    const status: NodeStatus = {
      ...present,
      addresses,
      capacity,
      allocatable: allocatableOf(this.#settings, capacity, devices, present.allocatable ?? {}),
      nodeInfo: nodeInfoOf(facts.machine, runtime, kubeletVersion),
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      ...(images !== undefined && { images }),
      ...(runtime.handlers.length > 0 && { runtimeHandlers: runtime.handlers }),
      ...((declaredFeatures.length > 0 || "declaredFeatures" in present) && { declaredFeatures }),
      ...(runtime.features !== undefined && { features: runtime.features }),
      conditions: this.#conditions(present.conditions ?? [], capacity, context),
      ...(volumesInUse !== undefined && { volumesInUse }),
      // API servers from v1.26 on keep it only where somebody says where configurations come from.
      ...(config !== undefined && node.spec?.configSource !== undefined && { config: config.status }),
    };
    this.#tellOfScheduling(node.spec?.unschedulable === true);
    const metadata = ownAnnotations(this.#repairLabels(node.metadata), this.#settings, config);
    return { ...node, metadata, status };
  }

  #conditions(
    present: readonly NodeCondition[],
    capacity: Readonly<Record<string, string>>,
    context: ConditionContext,
  ): readonly NodeCondition[] {
    const { facts, storageProblem } = this.#ports;
    const pressure = facts.pressure();
    const known = new Map(present.map((condition) => [condition.type, condition]));
    const { localStorageIsolation } = this.#settings;
    const problems = notReadyBecause({ facts, storageProblem, capacity, localStorageIsolation });
    const own = [
      ...(["memory", "disk", "pid"] as const).map((name) => {
        const words = pressures[name];
        return pressureCondition(words, pressure[name], known.get(words.type), context);
      }),
      readyCondition(problems, facts.shortcoming, known.get("Ready"), context),
    ];
    const byType = new Map(own.map((condition) => [condition.type, condition]));
    // Each stays where it was; what is new comes last, Ready after all others.
    const kept = present.map((condition) => byType.get(condition.type) ?? condition);
    return [...kept, ...own.filter(({ type }) => !known.has(type))];
  }

  async #findAddresses(present: readonly NodeAddress[], signal: AbortSignal): Promise<readonly NodeAddress[]> {
    const { facts, clock, log } = this.#ports;
    if (this.#settings.externalCloud && present.length > 0) return present;
    if (facts.cloud !== undefined) return this.#cloudAddresses(facts.cloud, present);
    const known = this.#addresses;
    if (known !== undefined && clock.monotonic() - known.at < addressesFreshMs) return known.found;
    try {
      const found = await findAddresses(this.#settings, present, facts.network, signal);
      this.#addresses = { found, at: clock.monotonic() };
      return found;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.error("Failed to set the node's addresses; they stay as they were", error);
      return present;
    }
  }

  /** Until the cloud has spoken the addresses stay as they are, and a new node has a name only. */
  #cloudAddresses({ instance }: NodeCloud, present: readonly NodeAddress[]): readonly NodeAddress[] {
    const waiting = present.length > 0 ? present : [{ type: "Hostname", address: this.#settings.nodeName }];
    if (instance === undefined || instance.addresses.length === 0) return waiting;
    try {
      return cloudAddresses(this.#settings, instance.addresses);
    } catch (error) {
      this.#ports.log.error("Failed to set the node's addresses; they stay as they were", error);
      return waiting;
    }
  }

  async #try<Value>(what: string, reading: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
    try {
      return await reading;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.error("Failed to set a part of the node's status; it stays as it was", error, { what });
      return undefined;
    }
  }

  #tellOfReboot(knownBootId: string | undefined): void {
    const { bootId } = this.#ports.facts.machine;
    if (this.#rebootTold || !knownBootId || knownBootId === bootId) return;
    this.#rebootTold = true;
    const { nodeName } = this.#settings;
    const message = `Node ${nodeName} has been rebooted, boot id: ${bootId}`;
    this.#ports.recordEvent({ type: "Warning", reason: "Rebooted", message });
  }

  #tellOfScheduling(unschedulable: boolean): void {
    const before = this.#unschedulable;
    this.#unschedulable = unschedulable;
    if (before === unschedulable || (before === undefined && !unschedulable)) return;
    const reason = unschedulable ? "NodeNotSchedulable" : "NodeSchedulable";
    this.#ports.recordEvent(statusEvent(this.#settings.nodeName, reason));
  }

  #repairLabels(metadata: Node["metadata"]): Node["metadata"] {
    const { architecture } = this.#ports.facts.machine;
    const { cloud } = this.#ports.facts;
    const labels = metadata?.labels ?? {};
    const own: Readonly<Record<string, string>> = {
      ...(cloud?.instance && { ...cloudLabels(cloud.instance), ...this.#settings.labels }),
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": architecture,
    };
    const wanted = Object.entries(own).filter(([name]) => repaired.has(name));
    if (wanted.every(([name, value]) => labels[name] === value)) return metadata;
    return { ...metadata, labels: { ...labels, ...Object.fromEntries(wanted) } };
  }
}
