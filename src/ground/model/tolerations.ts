import type { Taint, Toleration } from "./kube/gen/types.ts";

/** Whether one of the tolerations puts up with the taint. */
export function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(({ key = "", operator, value = "", effect = "" }) => {
    if (effect !== "" && effect !== taint.effect) return false;
    if (key !== "" && key !== taint.key) return false;
    if (operator === "Exists") return true;
    return key !== "" && value === (taint.value ?? "");
  });
}
