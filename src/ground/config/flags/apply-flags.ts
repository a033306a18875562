import type { KubeletFlags } from "../agent-config.ts";
import type { FieldStore } from "../fields/field-store.ts";
import { type FieldPath, specOf } from "../fields/fields.ts";
import { parseHostPort } from "../text/host-port.ts";
import { type FlagOnlyName, type FlagOnlyValue, flagOnly } from "./flag-only.ts";
import { flagTable } from "./flag-table.ts";
import { parseNodeIPs } from "./node-ip.ts";
import type { ParsedFlags } from "./parse-flags.ts";

/** Puts the given flags over what defaults and files say. */
export function applyFlags(store: FieldStore, { values }: ParsedFlags): void {
  for (const [name, value] of values) {
    const field = flagTable.get(name)?.field;
    if (field !== undefined && value !== undefined) applyFlag(store, field, name, value);
  }
  // Either way of asking is enough.
  if (values.get("seccomp-default") === true && store.get("seccompDefault") !== true) {
    store.set("seccompDefault", true, { from: "flag", flag: "seccomp-default" });
  }
}

function applyFlag(store: FieldStore, field: FieldPath, name: string, value: unknown): void {
  const origin = { from: "flag", flag: name } as const;
  switch (specOf(field).flag?.join) {
    case "append": {
      const base = store.get(field);
      store.set(field, [...(Array.isArray(base) ? base : []), ...(value as readonly unknown[])], origin);
      return;
    }
    case "merge":
      for (const [key, item] of Object.entries(value as Readonly<Record<string, unknown>>)) {
        store.setKey(field, key, item, origin);
      }
      return;
    default:
      store.set(field, value, origin);
  }
}

/** The flag-only settings, defaults filled in. `cloudProvider` is checked by the rules. */
export function buildFlags({ values }: ParsedFlags): KubeletFlags {
  return {
    configFile: value("config"),
    configDir: value("config-dir"),
    dynamicConfigDir: value("dynamic-config-dir"),
    dynamicConfigMap: value("dynamic-config-map"),
    dynamicConfigTrialMs: value("dynamic-config-trial"),
    kubeconfig: value("kubeconfig"),
    bootstrapKubeconfig: value("bootstrap-kubeconfig"),
    hostnameOverride: value("hostname-override"),
    nodeIPs: parseNodeIPs(value("node-ip")).addresses,
    certDir: value("cert-dir"),
    cloudProvider: value("cloud-provider") === "external" ? "external" : "",
    cloudInstance: value("cloud-instance"),
    rootDir: value("root-dir"),
    nodeLabels: value("node-labels"),
    dashboardAddress: parseHostPort(value("dashboard-address")),
    lockFile: value("lock-file"),
    exitOnLockContention: value("exit-on-lock-contention"),
    runtimeCgroups: value("runtime-cgroups"),
    imageCredentialProviderConfig: value("image-credential-provider-config"),
    imageCredentialProviderBinDir: value("image-credential-provider-bin-dir"),
    podInfraContainerImage: value("pod-infra-container-image"),
    minimumContainerTTLDurationMs: value("minimum-container-ttl-duration"),
    maximumDeadContainersPerContainer: value("maximum-dead-containers-per-container"),
    maximumDeadContainers: value("maximum-dead-containers"),
    experimentalMounterPath: value("experimental-mounter-path"),
    experimentalAllocatableIgnoreEviction: value("experimental-allocatable-ignore-eviction"),
    housekeepingIntervalMs: value("housekeeping-interval"),
  };

  function value<Name extends FlagOnlyName>(name: Name): FlagOnlyValue<Name> {
    return (values.get(name) ?? flagOnly[name].default) as FlagOnlyValue<Name>;
  }
}
