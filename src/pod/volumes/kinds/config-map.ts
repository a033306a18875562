import type { ConfigMap } from "../../../ground/model/index.ts";
import { configMapContent } from "../content/sources.ts";
import { ObjectReadError } from "../objects/ports.ts";
import type { VolumeKind } from "./kind.ts";
import {
  type LiveContentPorts,
  type LiveContentSpec,
  liveContentKind,
  objectsOf,
  requiredMode,
} from "./live-content.ts";

export function configMapKind(ports: LiveContentPorts): VolumeKind {
  const spec: LiveContentSpec = {
    plugin: "kubernetes.io/configmap",
    handles: ({ configMap }) => configMap !== undefined,
    medium: "disk",
    needs: ({ pod }, { configMap }) => [
      { kind: "configmap", namespace: pod.metadata.namespace, name: configMap?.name ?? "" },
    ],
    async content({ pod }, { configMap = {} }, _context, signal) {
      const mode = requiredMode(configMap.defaultMode);
      const map = await readConfigMap(ports, pod.metadata.namespace, configMap.name ?? "", configMap.optional, signal);
      return map === undefined ? new Map() : configMapContent(map, configMap, mode);
    },
  };
  return liveContentKind(spec, ports);
}

export async function readConfigMap(
  ports: Pick<LiveContentPorts, "objects">,
  namespace: string,
  name: string,
  optional: boolean | undefined,
  signal: AbortSignal,
): Promise<ConfigMap | undefined> {
  const map = await objectsOf(ports).read({ kind: "configmap", namespace, name }, signal);
  if (map === undefined && optional !== true) throw new ObjectReadError(`configmap "${name}" not found`);
  return map;
}
