import type { IdentifiedPod } from "../../ground/model/index.ts";
import type { Giving } from "../resources/index.ts";
import type { AdmissionHandler } from "./admission.ts";

/** Refuses pods that can't have the CPUs, the memory or the devices that they are to have alone, or not where they must be. */
export function placementHandler(placement: { readonly give: (pod: IdentifiedPod) => Giving }): AdmissionHandler {
  return (pod) => {
    const giving = placement.give(pod);
    if (giving.type === "given") return { type: "admitted", takeBack: giving.takeBack };
    return { type: "rejected", reason: giving.reason, message: giving.message };
  };
}
