import { PluginError, type PreferenceQuery } from "../../../connections/plugins/index.ts";
import { type Clock, cutText, isAbort, messageOf, type TaskScope } from "../../../ground/base/index.ts";
import { type IdentifiedPod, type PodUid, type RejectionReason, uidOf } from "../../../ground/model/index.ts";
import { PreferenceNeeded } from "./choose-devices.ts";
import { type DeviceManager, type DeviceManagerPorts, PluginAwaited } from "./device-manager.ts";
import { containersInTurn } from "./wanted-devices.ts";

export type DeviceVerdict =
  | { readonly type: "rejected"; readonly reason: RejectionReason; readonly message: string }
  /** A plugin is asked, or awaited; `onDecidable` tells when to decide again. */
  | { readonly type: "undecided"; readonly waitsFor: string };

/** What was decided about all that a pod asks for; `takeBack` undoes it at once. */
interface Given {
  readonly type: "admitted" | "rejected" | "undecided";
  readonly takeBack?: () => void;
}

/** What is being done for a pod that waits. */
type UnderWay =
  | { readonly step: "asking"; readonly what: string }
  | { readonly step: "failed"; readonly message: string };

export interface DeviceAdmissionPorts extends Pick<DeviceManagerPorts, "plugin" | "onDecidable"> {
  readonly scope: Pick<TaskScope, "spawn">;
  readonly clock: Clock;
}

interface Preference {
  readonly key: string;
  readonly ids: readonly string[];
}

/** Others may take what a plugin has just chosen; after so many questions the agent chooses by itself. */
const mostQuestions = 5;
const longestMessage = 2_000;
const breakMs = 1_000;
const mostBreaks = 10;

/**
 * Decides about pods that want devices. Plugins are asked meanwhile: the pod waits, and nobody else does. A plugin that is
 * not there is awaited for a while, since a machine that has just started has its pods before its plugins.
 */
export class DeviceAdmission {
  readonly #manager: DeviceManager;
  readonly #ports: DeviceAdmissionPorts;
  readonly #underWay = new Map<PodUid, UnderWay>();
  readonly #preferences = new Map<PodUid, Map<string, Preference>>();
  readonly #questions = new Map<PodUid, number>();
  readonly #broken = new Map<PodUid, number>();

  constructor(manager: DeviceManager, ports: DeviceAdmissionPorts) {
    this.#manager = manager;
    this.#ports = ports;
  }

  /**
   * `give` gives the pod all that it asks for, devices included, or throws what `DeviceManager.choose` throws. Only the
   * devices are kept while their plugins are asked: whatever else it asks for it gets when it is taken.
   */
  admit<Verdict extends Given>(pod: IdentifiedPod, give: () => Verdict): Verdict | DeviceVerdict {
    const uid = uidOf(pod);
    if (containersInTurn(pod).every((container) => this.#manager.wanted(container).size === 0)) return give();
    const underWay = this.#underWay.get(uid);
    if (underWay?.step === "asking") return { type: "undecided", waitsFor: underWay.what };
    if (underWay?.step === "failed") return this.#reject(uid, underWay.message);
    let verdict: Verdict;
    try {
      verdict = give();
    } catch (error) {
      return this.#obstacle(uid, error);
    }
    if (verdict.type !== "admitted") {
      this.#manager.forget(uid);
      return this.#end(uid, verdict);
    }
    if (this.#manager.unanswered(uid).length === 0) return this.#end(uid, verdict);
    this.#manager.keepingDevices(() => verdict.takeBack?.());
    return this.#ask(uid, "its device plugins to say how its devices are used", (signal) =>
      this.#allocate(uid, signal),
    );
  }

  /** The plugin's answer to this very question; none once it was asked often enough. */
  preferred(uid: PodUid, resource: string, query: PreferenceQuery): readonly string[] | undefined {
    const known = this.#preferences.get(uid)?.get(resource);
    if (known?.key === keyOf(query)) return known.ids;
    return (this.#questions.get(uid) ?? 0) >= mostQuestions ? [] : undefined;
  }

  /** Decides about the devices of `manager` as this one would. No plugin is asked: a pod that needs that would wait. */
  onTrial(manager: DeviceManager): DeviceAdmission {
    const { clock, plugin } = this.#ports;
    return new DeviceAdmission(manager, { clock, plugin, scope: { spawn() {} }, onDecidable() {} });
  }

  /** Nothing is done for pods that are gone. */
  retain(holds: (uid: PodUid) => boolean): void {
    for (const uid of [...this.#underWay.keys(), ...this.#questions.keys()]) if (!holds(uid)) this.#forget(uid);
  }

  #obstacle(uid: PodUid, error: unknown): DeviceVerdict {
    if (error instanceof PluginAwaited) return { type: "undecided", waitsFor: error.what };
    if (error instanceof PreferenceNeeded) {
      const { resource, query } = error;
      const what = `the device plugin of ${resource} to say which devices it prefers`;
      return this.#ask(uid, what, (signal) => this.#prefer(uid, resource, query, signal));
    }
    throw error;
  }

  /** Has something done while the pod waits; what comes of it decides the next time it is asked about. */
  #ask(uid: PodUid, what: string, work: (signal: AbortSignal) => Promise<void>): DeviceVerdict {
    const asking: UnderWay = { step: "asking", what };
    this.#underWay.set(uid, asking);
    this.#ports.scope.spawn(`devices of ${uid}`, async (signal) => {
      let next: UnderWay | undefined;
      try {
        await work(signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        next = { step: "failed", message: cutText(messageOf(error), longestMessage) };
      }
      // The pod may have gone, and come again.
      if (this.#underWay.get(uid) !== asking) return;
      if (next === undefined) this.#underWay.delete(uid);
      else this.#underWay.set(uid, next);
      this.#ports.onDecidable();
    });
    return { type: "undecided", waitsFor: what };
  }

  async #allocate(uid: PodUid, signal: AbortSignal): Promise<void> {
    for (const place of this.#manager.unanswered(uid)) {
      const asked = this.#ports.plugin(place.resource);
      try {
        await this.#manager.answer(place, signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        const hasLeft = this.#ports.plugin(place.resource) !== asked || asked === undefined;
        const isUncertain = !(error instanceof PluginError) || error.isUncertain;
        // A call may break before it is known that the plugin has left.
        const mayLeave =
          error instanceof PluginError && error.code === "Unavailable" && this.#breaks(uid) <= mostBreaks;
        if (!(hasLeft && isUncertain) && !mayLeave) throw error;
        // It left before it could answer: the pod waits for its return, with devices that are chosen anew.
        if (!hasLeft) await this.#ports.clock.sleep(breakMs, signal);
        this.#manager.forget(uid);
        return;
      }
    }
    await this.#manager.saved(signal);
  }

  async #prefer(uid: PodUid, resource: string, query: PreferenceQuery, signal: AbortSignal): Promise<void> {
    this.#questions.set(uid, (this.#questions.get(uid) ?? 0) + 1);
    const plugin = this.#ports.plugin(resource);
    // Gone: the next look at the pod finds that out.
    if (plugin === undefined) return;
    try {
      const ids = await plugin.client.preferred(query, signal);
      const known = this.#preferences.get(uid) ?? new Map<string, Preference>();
      this.#preferences.set(uid, known.set(resource, { key: keyOf(query), ids }));
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      if (this.#ports.plugin(resource) === plugin) {
        throw new Error(`device plugin GetPreferredAllocation rpc failed with err: ${messageOf(error)}`, {
          cause: error,
        });
      }
    }
  }

  /** How often a call for the pod has broken, this time included. */
  #breaks(uid: PodUid): number {
    const count = (this.#broken.get(uid) ?? 0) + 1;
    this.#broken.set(uid, count);
    return count;
  }

  #reject(uid: PodUid, message: string): DeviceVerdict {
    this.#manager.forget(uid);
    const text = `Allocate failed due to ${message}, which is unexpected`;
    return this.#end(uid, { type: "rejected", reason: "UnexpectedAdmissionError", message: text });
  }

  #end<Verdict>(uid: PodUid, verdict: Verdict): Verdict {
    this.#forget(uid);
    return verdict;
  }

  #forget(uid: PodUid): void {
    this.#underWay.delete(uid);
    this.#preferences.delete(uid);
    this.#questions.delete(uid);
    this.#broken.delete(uid);
  }
}

function keyOf({ available, mustInclude, count }: PreferenceQuery): string {
  return JSON.stringify([available, mustInclude, count]);
}
