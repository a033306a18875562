import type { FieldStore } from "./fields/field-store.ts";
import { type FieldPath, fieldPaths, specOf } from "./fields/fields.ts";
import type { GateSet } from "./gates/gates.ts";

/** The hard thresholds a configuration file gets that names none. */
const defaultEvictionHard: Readonly<Record<string, string>> = {
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
};

/** Fills in what is not set. `legacy` are the defaults of a start without configuration file. */
export function applyDefaults(store: FieldStore, which: "file" | "legacy", gates: GateSet): void {
  // These two depend on what is set, so they come before the defaults that would hide it.
  if (store.isUnset("nodeStatusReportFrequency") && !store.isUnset("nodeStatusUpdateFrequency")) {
    store.set("nodeStatusReportFrequency", store.get("nodeStatusUpdateFrequency"), {
      from: "default",
      because: "follows nodeStatusUpdateFrequency",
    });
  }
  if (store.isUnset("serializeImagePulls") && (store.get("maxParallelImagePulls") ?? 0) >= 2) {
    store.set("serializeImagePulls", false, { from: "default", because: "maxParallelImagePulls allows several" });
  }
  for (const path of fieldPaths) {
    if (!store.isUnset(path)) continue;
    const value = defaultOf(path, which);
    // An explicit zero that is the default anyway stays where it was written.
    if (value === undefined || store.get(path) === value) continue;
    store.set(path, value, { from: "default" });
  }
  if ((store.get("podPidsLimit") ?? -1) < -1) {
    store.set("podPidsLimit", -1, { from: "default", because: "any negative limit means -1" });
  }
  if (gates.isOn("KubeletCrashLoopBackOffMax") && !store.has("crashLoopBackOff.maxContainerRestartPeriod")) {
    store.set("crashLoopBackOff.maxContainerRestartPeriod", 300_000, {
      from: "default",
      because: "the gate KubeletCrashLoopBackOffMax is on",
    });
  }
  if (gates.isOn("KubeletEnsureSecretPulledImages") && store.get("imagePullCredentialsVerificationPolicy") === "") {
    store.set("imagePullCredentialsVerificationPolicy", "NeverVerifyPreloadedImages", {
      from: "default",
      because: "the gate KubeletEnsureSecretPulledImages is on",
    });
  }
}

/** Only for a --config file: thresholds it does not name. */
export function applyEvictionDefaults(store: FieldStore): void {
  const own = store.get("evictionHard");
  const origin = store.originOf("evictionHard");
  if (own === undefined || origin === undefined || origin.from === "default") {
    store.set("evictionHard", defaultEvictionHard, { from: "default" });
    return;
  }
  if (store.get("mergeDefaultEvictionSettings") !== true) return;
  for (const [signal, threshold] of Object.entries(defaultEvictionHard)) {
    if (Object.hasOwn(own, signal)) continue;
    store.setKey("evictionHard", signal, threshold, { from: "default", because: "mergeDefaultEvictionSettings" });
  }
}

function defaultOf(path: FieldPath, which: "file" | "legacy"): unknown {
  const spec = specOf(path);
  return which === "legacy" && spec.legacyDefault !== undefined ? spec.legacyDefault : spec.default;
}
