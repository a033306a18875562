import type { signalFields } from "../../../src/ground/config/fields/fields-signals.ts";
import { type FieldSample, minutes, on } from "./sample.ts";

export const signalsSamples: Record<keyof typeof signalFields, FieldSample> = {
  evictionHard: {
    valid: ["{memory.available: 1Gi, nodefs.available: 0%}", { "memory.available": "1Gi", "nodefs.available": "0%" }],
    invalid: [
      ["{memory.free: 1Gi}", "unsupported eviction signal memory.free"],
      ["{memory.available: '0'}", "a quantity must be positive"],
      ["{memory.available: 101%}", "a percentage must be <= 100%"],
      ["{memory.available: -1%}", "a percentage must be >= 0%"],
      ["{memory.available: much}", "neither a quantity such as 100Mi nor a percentage"],
    ],
  },
  evictionSoft: {
    valid: ["{memory.available: 2Gi}", { "memory.available": "2Gi" }],
    besides: "evictionSoftGracePeriod: {memory.available: 1m}",
    invalid: [["{pid.available: 5%}", "grace period must be specified for the soft eviction threshold pid.available"]],
  },
  evictionSoftGracePeriod: {
    valid: ["{memory.available: 1m}", { "memory.available": "1m" }],
    invalid: [
      ["{memory.available: -1m}", "a grace period must not be negative"],
      ["{memory.available: soon}", "time: invalid duration"],
      ["{memory: 1m}", "unsupported eviction signal memory"],
    ],
  },
  evictionPressureTransitionPeriod: minutes,
  evictionMaxPodGracePeriod: { valid: ["-1", -1] },
  evictionMinimumReclaim: {
    valid: ["{memory.available: '0'}", { "memory.available": "0" }],
    invalid: [
      ["{memory.available: '-1'}", "a quantity must not be negative"],
      ["{memory.available: 0%}", "a percentage must be positive"],
    ],
  },
  mergeDefaultEvictionSettings: on,
  kernelMemcgNotification: on,
  shutdownGracePeriod: {
    valid: ["1m", 60_000],
    invalid: [
      ["500ms", "shutdownGracePeriod 500ms must be either zero or otherwise >= 1 sec"],
      ["-1s", "shutdownGracePeriod -1s must be either zero"],
      ["1m", "requires feature gate GracefulNodeShutdown", "featureGates: {GracefulNodeShutdown: false}"],
    ],
  },
  shutdownGracePeriodCriticalPods: {
    valid: ["1m", 60_000],
    besides: "shutdownGracePeriod: 2m",
    invalid: [
      ["3m", "shutdownGracePeriodCriticalPods 3m0s must be <= shutdownGracePeriod 2m0s"],
      ["1ms", "shutdownGracePeriodCriticalPods 1ms must be either zero"],
    ],
  },
  shutdownGracePeriodByPodPriority: {
    valid: ["[{priority: 10, shutdownGracePeriodSeconds: 20}]", [{ priority: 10, shutdownGracePeriodSeconds: 20 }]],
    invalid: [
      ["[{priority: 1}]", "cannot specify both shutdownGracePeriodByPodPriority", "shutdownGracePeriod: 1m"],
      [
        "[{priority: 1}]",
        "requires feature gate GracefulNodeShutdownBasedOnPodPriority",
        "featureGates: {GracefulNodeShutdownBasedOnPodPriority: false}",
      ],
    ],
  },
  "logging.format": {
    valid: ["json", "json"],
    invalid: [
      ["xml", 'initialize logging: logging.format (--logging-format): Invalid value: "xml": Unsupported log format'],
      ["json", "Log format json is disabled", "featureGates: {LoggingBetaOptions: false}"],
    ],
  },
  "logging.flushFrequency": { valid: ["1000000", 1] },
  "logging.verbosity": { valid: ["7", 7], invalid: [["2147483648", "Must be <= 2147483647"]] },
  "logging.vmodule": {
    valid: ["[{filePattern: a, verbosity: 3}]", [{ filePattern: "a", verbosity: 3 }]],
    invalid: [
      ["[{verbosity: 3}]", "logging.vmodule[0]: Required value: File pattern must not be empty"],
      ["[{filePattern: a=b}]", "must not contain equal sign or comma"],
      ["[{filePattern: a, verbosity: 4000000000}]", "Must be <= 2147483647"],
      ["[{filePattern: a}], format: json", "Only supported for text log format"],
    ],
  },
  "logging.options.text.splitStream": {
    ...on,
    besides: "featureGates: {LoggingAlphaOptions: true}",
    invalid: [["true", "Feature LoggingAlphaOptions is disabled", "featureGates: {LoggingAlphaOptions: false}"]],
  },
  "logging.options.text.infoBufferSize": {
    valid: ["1Ki", "1Ki"],
    besides: "featureGates: {LoggingAlphaOptions: true}",
    invalid: [["1", "Feature LoggingAlphaOptions is disabled", "featureGates: {LoggingAlphaOptions: false}"]],
  },
  "logging.options.json.splitStream": { ...on, besides: "featureGates: {LoggingAlphaOptions: true}" },
  "logging.options.json.infoBufferSize": { valid: ["64", "64"], besides: "featureGates: {LoggingAlphaOptions: true}" },
  "tracing.endpoint": {
    valid: ['"unix:///run/otel"', "unix:///run/otel"],
    invalid: [['"http://host:4317"', 'tracing.endpoint "http://host:4317": unsupported scheme: "http"']],
  },
  "tracing.samplingRatePerMillion": {
    valid: ["1000000", 1_000_000],
    invalid: [
      ["-1", "tracing.samplingRatePerMillion -1 must be positive"],
      ["1000001", "must be less than or equal to one million"],
    ],
  },
};
