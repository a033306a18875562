import { type PodUid, uidOf } from "../../ground/model/index.ts";
import type { DeviceAdmission, DeviceManager } from "../resources/index.ts";
import type { AdmissionHandler } from "./admission.ts";

export interface DeviceHandlerPorts {
  readonly manager: Pick<DeviceManager, "retain">;
  readonly admission: Pick<DeviceAdmission, "admit" | "retain">;
  /** Somebody works on the pod, or the runtime has it: what it has it keeps, and it is never refused for devices. */
  readonly isHere: (uid: PodUid) => boolean;
  /** Whether anything of the pod may still use its devices. True while that can't be told. */
  readonly holds: (uid: PodUid) => boolean;
}

/** Has pods wait for device plugins, where `place`, which gives out devices too, can't do without them. */
export function deviceHandler(ports: DeviceHandlerPorts, place: AdmissionHandler): AdmissionHandler {
  const { manager, admission, isHere, holds } = ports;
  return (pod, others) => {
    const uid = uidOf(pod);
    if (isHere(uid)) return place(pod, others);
    const isHeld = (other: PodUid): boolean => other === uid || holds(other);
    admission.retain(isHeld);
    manager.retain(isHeld);
    return admission.admit(pod, () => place(pod, others));
  };
}
