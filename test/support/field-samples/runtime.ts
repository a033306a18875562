import type { runtimeFields } from "../../../src/ground/config/fields/fields-runtime.ts";
import { count, type FieldSample, minutes, negative, off, on, word } from "./sample.ts";

export const runtimeSamples: Record<keyof typeof runtimeFields, FieldSample> = {
  containerRuntimeEndpoint: word,
  imageServiceEndpoint: word,
  runtimeRequestTimeout: minutes,
  registryPullQPS: count(negative("registryPullQPS (--registry-qps)")),
  registryBurst: count(negative("registryBurst (--registry-burst)")),
  serializeImagePulls: off,
  maxParallelImagePulls: {
    valid: ["7", 7],
    invalid: [
      ["0", "maxParallelImagePulls 0 must be a positive number"],
      [
        "2",
        "maxParallelImagePulls 2 cannot be larger than 1 unless serializeImagePulls (--serialize-image-pulls) is set to false",
        "serializeImagePulls: true",
      ],
    ],
  },
  imagePullCredentialsVerificationPolicy: {
    valid: ["AlwaysVerify", "AlwaysVerify"],
    besides: "featureGates: {KubeletEnsureSecretPulledImages: true}",
    invalid: [
      [
        "AlwaysVerify",
        "must not be set if KubeletEnsureSecretPulledImages",
        "featureGates: {KubeletEnsureSecretPulledImages: false}",
      ],
      ["Sometimes", 'option "Sometimes" specified for imagePullCredentialsVerificationPolicy'],
    ],
  },
  preloadedImagesVerificationAllowlist: {
    valid: ["[registry.example/a, registry.example/b/*]", ["registry.example/a", "registry.example/b/*"]],
    besides:
      "featureGates: {KubeletEnsureSecretPulledImages: true}\nimagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages",
    invalid: [
      [
        "[a]",
        "must not be set if KubeletEnsureSecretPulledImages",
        "featureGates: {KubeletEnsureSecretPulledImages: false}",
      ],
      [
        "[a]",
        'is not "NeverVerifyAllowlistedImages"',
        "featureGates: {KubeletEnsureSecretPulledImages: true}\nimagePullCredentialsVerificationPolicy: NeverVerify",
      ],
      ['["r.io/a:v1"]', "neither tag nor digest is accepted"],
      ['["r.io/*/a"]', "only patterns ending with '/*' are allowed"],
      ['[" r.io/a"]', "leading/trailing spaces are not allowed"],
      ['["/*"]', "at least registry hostname is required"],
      ['[""]', "too short"],
      ['["r.io/A"]', "failed to parse as an image name"],
    ],
  },
  imageMinimumGCAge: minutes,
  imageMaximumGCAge: {
    valid: ["5m", 300_000],
    invalid: [
      ["-1s", "imageMaximumGCAge -1s must not be negative"],
      ["1m", "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge (--minimum-image-ttl-duration) 2m0s"],
      ["5m", "ImageMaximumGCAge feature gate is required", "featureGates: {ImageMaximumGCAge: false}"],
    ],
  },
  imageGCHighThresholdPercent: {
    valid: ["90", 90],
    invalid: [
      ["101", "imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive"],
      [
        "80",
        "imageGCLowThresholdPercent (--image-gc-low-threshold) 80 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 80",
      ],
    ],
  },
  imageGCLowThresholdPercent: { valid: ["0", 0], invalid: [["-1", "must be between 0 and 100, inclusive"]] },
  containerLogMaxSize: {
    valid: ["'-1'", "-1"],
    invalid: [
      ['"10 MB"', 'containerLogMaxSize (--container-log-max-size) "10 MB" must be a whole number of bytes'],
      ['"100m"', "must be a whole number of bytes"],
    ],
  },
  containerLogMaxFiles: count(["1", "containerLogMaxFiles (--container-log-max-files) 1 must be greater than 1"]),
  containerLogMaxWorkers: count(["0", "containerLogMaxWorkers 0 must be greater than or equal to 1"]),
  containerLogMonitorInterval: {
    valid: ["3s", 3_000],
    invalid: [["2s", "containerLogMonitorInterval 2s must be a positive time duration greater than or equal to 3s"]],
  },
  seccompDefault: on,
  hairpinMode: { valid: ["none", "none"], invalid: [["veth", 'hairpinMode (--hairpin-mode) "veth" must be one of']] },
  "crashLoopBackOff.maxContainerRestartPeriod": {
    valid: ["1m", 60_000],
    besides: "featureGates: {KubeletCrashLoopBackOffMax: true}",
    invalid: [
      ["500ms", "maxContainerRestartPeriod 500ms must be set between 1s and 300s"],
      ["301s", "must be set between 1s and 300s"],
      ["1m", "FeatureGate KubeletCrashLoopBackOffMax not enabled", "featureGates: {KubeletCrashLoopBackOffMax: false}"],
    ],
  },
  localStorageCapacityIsolation: off,
  "userNamespaces.idsPerPod": {
    valid: ["131072", 131_072],
    invalid: [
      ["65535", "userNamespaces.idsPerPod 65535 must not be less than 65536"],
      ["65537", "must be a multiple of 65536"],
      ["4294967296", "must not be more than 4294967295"],
    ],
  },
};
