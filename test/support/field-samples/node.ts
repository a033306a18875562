import type { nodeFields } from "../../../src/ground/config/fields/fields-node.ts";
import { count, type FieldSample, minutes, negative, off, path, word } from "./sample.ts";

export const nodeSamples: Record<keyof typeof nodeFields, FieldSample> = {
  contentType: word,
  kubeAPIQPS: count(negative("kubeAPIQPS (--kube-api-qps)")),
  kubeAPIBurst: count(negative("kubeAPIBurst (--kube-api-burst)")),
  eventRecordQPS: count(negative("eventRecordQPS (--event-qps)")),
  eventBurst: count(negative("eventBurst (--event-burst)")),
  nodeStatusUpdateFrequency: minutes,
  nodeStatusReportFrequency: minutes,
  nodeLeaseDurationSeconds: count(["-1", "nodeLeaseDurationSeconds -1 must be greater than 0"]),
  nodeStatusMaxImages: count(["-2", "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"]),
  registerNode: off,
  registerWithTaints: {
    valid: ["[{key: a.io/b, value: c, effect: NoSchedule}]", [{ key: "a.io/b", value: "c", effect: "NoSchedule" }]],
    invalid: [
      [
        "[{key: a b, effect: NoSchedule}]",
        "registerWithTaints[0] (--register-with-taints): invalid taint: a b=:NoSchedule: key: name part",
      ],
      ["[{key: a, value: b c, effect: NoSchedule}]", "value: a valid label must be"],
      ["[{key: a, effect: Never}]", 'effect "Never": must be one of'],
      ["[{key: a, timeAdded: 2020-01-01T00:00:00Z}]", "taint.timeAdded"],
    ],
  },
  providerID: word,
  clusterDomain: word,
  clusterDNS: { valid: ["[10.0.0.10]", ["10.0.0.10"]] },
  resolvConf: { valid: ['""', ""] },
  podCIDR: word,
  configMapAndSecretChangeDetectionStrategy: {
    valid: ["Cache", "Cache"],
    invalid: [["Guess", 'configMapAndSecretChangeDetectionStrategy "Guess" must be one of: "Get", "Cache", "Watch"']],
  },
  enableControllerAttachDetach: off,
  volumePluginDir: path,
  volumeStatsAggPeriod: { valid: ["-1s", -1_000] },
  featureGates: { valid: ["{MemoryQoS: true}", { MemoryQoS: true }] },
  showHiddenMetricsForVersion: {
    valid: ['"1.33"', "1.33"],
    invalid: [['"1.32"', "must be omitted or have the value '1.33'"]],
  },
};
