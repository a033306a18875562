import type { ConfigMap } from "../../../ground/model/index.ts";
import { configMapContent } from "../content/sources.ts";
import { ObjectReadError } from "../objects/ports.ts";
import { type ContentKindPorts, type ContentKindSpec, contentKind, objectsOf, requiredMode } from "./content-kind.ts";
import type { VolumeKind } from "./kind.ts";

export function configMapKind(ports: ContentKindPorts): VolumeKind {
  const spec: ContentKindSpec = {
    plugin: "kubernetes.io/configmap",
    handles: ({ configMap }) => configMap !== undefined,
    medium: "disk",
    needs: ({ pod }, { configMap }) => [
      { kind: "configmap", namespace: pod.metadata.namespace, name: configMap?.name ?? "" },
    ],
    async content({ pod }, { configMap = {} }, context, signal) {
      const mode = requiredMode(configMap.defaultMode);
      const map = await readConfigMap(ports, pod.metadata.namespace, configMap.name ?? "", configMap.optional, signal);
      context.madeFrom?.(map?.metadata?.resourceVersion);
      return map === undefined ? new Map() : configMapContent(map, configMap, mode);
    },
  };
  return contentKind(spec, ports);
}

export async function readConfigMap(
  ports: Pick<ContentKindPorts, "objects">,
  namespace: string,
  name: string,
  optional: boolean | undefined,
  signal: AbortSignal,
): Promise<ConfigMap | undefined> {
  const map = await objectsOf(ports).read({ kind: "configmap", namespace, name }, signal);
  if (map === undefined && optional !== true) throw new ObjectReadError(`configmap "${name}" not found`);
  return map;
}
