import { durationKind, langleMapKind, quantityKind, verbosityKind, vmoduleKind } from "../flags/flag-kinds.ts";
import {
  durationOrNanosField,
  int32Field,
  priorityPeriodsField,
  quantityField,
  stringField,
  uint32Field,
  vmoduleField,
} from "./field-kinds.ts";
import { bool, duration, field, int32, stringMap, text, unset } from "./field-spec.ts";

/** Eviction, shutdown, logging, tracing. */
export const signalFields = {
  evictionHard: stringMap({}, "Thresholds that evict at once, memory.available<100Mi,...", {
    flag: "eviction-hard",
    flagKind: langleMapKind,
  }),
  evictionSoft: stringMap({}, "Thresholds that evict after a grace period, memory.available<1Gi,...", {
    flag: "eviction-soft",
    flagKind: langleMapKind,
  }),
  evictionSoftGracePeriod: stringMap({}, "Grace period of each soft threshold, memory.available=1m30s,...", {
    flag: "eviction-soft-grace-period",
  }),
  evictionPressureTransitionPeriod: duration(300_000, "Time a pressure condition outlasts the pressure.", {
    flag: "eviction-pressure-transition-period",
  }),
  evictionMaxPodGracePeriod: int32(0, "Seconds a pod gets on soft eviction; negative for its own.", {
    flag: "eviction-max-pod-grace-period",
  }),
  evictionMinimumReclaim: stringMap({}, "What to free beyond a threshold, imagefs.available=2Gi,...", {
    flag: "eviction-minimum-reclaim",
  }),
  mergeDefaultEvictionSettings: bool(false, "Add the default hard thresholds to those of the file.", { pointer: true }),
  kernelMemcgNotification: bool(false, "Let the kernel notify of memory pressure.", {
    flag: "kernel-memcg-notification",
  }),
  shutdownGracePeriod: duration(0, "Time the machine's shutdown waits for pods; 0 is off."),
  shutdownGracePeriodCriticalPods: duration(0, "Part of it that critical pods get."),
  shutdownGracePeriodByPodPriority: field(priorityPeriodsField, undefined, [], "Time to shut down by pod priority."),
  "logging.format": text("text", "Log format: text or json.", { flag: "logging-format" }),
  "logging.flushFrequency": field(durationOrNanosField, durationKind, 5_000, "Longest time a log line is kept back.", {
    flag: "log-flush-frequency",
    flagStays: true,
  }),
  "logging.verbosity": field(uint32Field, verbosityKind, 0, "Log verbosity.", {
    flag: "v",
    shorthand: "v",
    flagStays: true,
  }),
  "logging.vmodule": field(vmoduleField, vmoduleKind, [], "Verbosity by file, pattern=N,...", {
    flag: "vmodule",
    flagStays: true,
    flagJoins: "append",
  }),
  "logging.options.text.splitStream": bool(false, "Text format: errors to stderr, the rest to stdout (alpha).", {
    flag: "log-text-split-stream",
  }),
  "logging.options.text.infoBufferSize": field(
    quantityField,
    quantityKind,
    "0",
    "Text format: buffer of stdout (alpha).",
    {
      flag: "log-text-info-buffer-size",
    },
  ),
  "logging.options.json.splitStream": bool(false, "JSON format: errors to stderr, the rest to stdout (alpha).", {
    flag: "log-json-split-stream",
  }),
  "logging.options.json.infoBufferSize": field(
    quantityField,
    quantityKind,
    "0",
    "JSON format: buffer of stdout (alpha).",
    {
      flag: "log-json-info-buffer-size",
    },
  ),
  "tracing.endpoint": unset(stringField, "Where traces go; unset is localhost:4317."),
  "tracing.samplingRatePerMillion": unset(int32Field, "Traces started per million; unset follows the caller."),
} as const;
