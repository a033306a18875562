import type { MetricRegistry } from "../../ground/metrics/index.ts";

/** A configuration, in the labels of older kubelets. */
interface ShownVersion {
  readonly source: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly key: string;
}

export interface ShownRollout {
  readonly assigned: ShownVersion | undefined;
  readonly active: ShownVersion | undefined;
  readonly lastKnownGood: ShownVersion | undefined;
  readonly hasError: boolean;
}

const labels = [
  "node_config_source",
  "node_config_uid",
  "node_config_resource_version",
  "node_config_kubelet_key",
] as const;

/** Which configuration is assigned, active and known to be good. */
export function showRollout(registry: MetricRegistry, read: () => ShownRollout): void {
  const family = (name: string, help: string, version: () => ShownVersion | undefined): void =>
    registry.read(`kubelet_node_config_${name}`, "gauge", help, labels, () => {
      const shown = version();
      if (shown === undefined) return [];
      const { source, uid, resourceVersion, key } = shown;
      const values = {
        node_config_source: source,
        node_config_uid: uid,
        node_config_resource_version: resourceVersion,
        node_config_kubelet_key: key,
      };
      return [[values, 1]];
    });
  family("assigned", "The node's understanding of intended config. The count is always 1.", () => read().assigned);
  family("active", "The config source the node is actively using. The count is always 1.", () => read().active);
  family(
    "last_known_good",
    "The config source the node will fall back to. The count is always 1.",
    () => read().lastKnownGood,
  );
  registry.read(
    "kubelet_node_config_error",
    "gauge",
    "This metric is true (1) if the node is experiencing a configuration-related error, false (0) otherwise.",
    [],
    () => [[{}, read().hasError ? 1 : 0]],
  );
}
