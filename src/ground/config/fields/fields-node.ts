import { boolMapKind, taintsKind } from "../flags/flag-kinds.ts";
import { boolMapField, taintsField } from "./field-kinds.ts";
import { atLeast, bool, duration, field, greaterThan, int32, notNegative, oneOf, strings, text } from "./field-spec.ts";

/** Traffic with the API server, the Node object, DNS, feature gates. */
export const nodeFields = {
  contentType: text("application/vnd.kubernetes.protobuf", "Encoding of requests to the API server.", {
    flag: "kube-api-content-type",
  }),
  kubeAPIQPS: int32(50, "Requests per second to the API server; 0 means 5.", {
    flag: "kube-api-qps",
    pointer: true,
    check: notNegative,
  }),
  kubeAPIBurst: int32(100, "Requests to the API server in one burst.", { flag: "kube-api-burst", check: notNegative }),
  eventRecordQPS: int32(50, "Events per second; 0 means 5.", { flag: "event-qps", pointer: true, check: notNegative }),
  eventBurst: int32(100, "Events in one burst.", { flag: "event-burst", check: notNegative }),
  nodeStatusUpdateFrequency: duration(10_000, "Time between two computations of the node status.", {
    flag: "node-status-update-frequency",
  }),
  nodeStatusReportFrequency: duration(300_000, "Time after which an unchanged node status is sent again."),
  nodeLeaseDurationSeconds: int32(40, "Length of the node's lease, renewed every quarter of it.", {
    check: greaterThan(0),
  }),
  nodeStatusMaxImages: int32(50, "Images listed in the node status; -1 for all.", {
    flag: "node-status-max-images",
    pointer: true,
    check: atLeast(-1, "must be -1 or greater"),
  }),
  registerNode: bool(true, "Create the Node object.", { flag: "register-node", pointer: true }),
  registerWithTaints: field(taintsField, taintsKind, [], "Taints of a newly registered node, key=value:effect,...", {
    flag: "register-with-taints",
  }),
  providerID: text("", "Identity of the machine in its cloud.", { flag: "provider-id", flagStays: true }),
  clusterDomain: text("", "DNS search domain of the cluster.", { flag: "cluster-domain" }),
  clusterDNS: strings([], "IP addresses of the cluster's DNS servers.", { flag: "cluster-dns" }),
  resolvConf: text("/etc/resolv.conf", "Resolver configuration the pods' one is based on; empty for none.", {
    flag: "resolv-conf",
    pointer: true,
    isPath: true,
  }),
  podCIDR: text("", "Addresses for pods, used only without an API server.", { flag: "pod-cidr" }),
  configMapAndSecretChangeDetectionStrategy: text("Watch", "How changes of config maps and secrets are noticed.", {
    check: oneOf(["Get", "Cache", "Watch"]),
  }),
  enableControllerAttachDetach: bool(true, "Leave attaching of volumes to the controller.", {
    flag: "enable-controller-attach-detach",
    pointer: true,
  }),
  volumePluginDir: text("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/", "Directory of flexvolume drivers.", {
    flag: "volume-plugin-dir",
    isPath: true,
  }),
  volumeStatsAggPeriod: duration(60_000, "Time between two measurements of volumes; negative is off.", {
    flag: "volume-stats-agg-period",
  }),
  featureGates: field(boolMapField, boolMapKind, {}, "Feature gates, name=true|false,...", {
    flag: "feature-gates",
    flagJoins: "merge",
  }),
  showHiddenMetricsForVersion: text("", "Show metrics hidden since this version: empty, or the previous minor."),
} as const;
