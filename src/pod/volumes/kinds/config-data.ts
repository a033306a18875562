import type { ConfigMap, Secret } from "../../../ground/model/index.ts";
import { configMapContent, downwardContent, secretContent } from "../content/sources.ts";
import { ObjectReadError } from "../objects/ports.ts";
import type { VolumeKind } from "./kind.ts";
import { type LiveContentPorts, type LiveContentSpec, liveContentKind } from "./live-content.ts";

const standalone = "not supported due to running kubelet in standalone mode";

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

export function secretKind(ports: LiveContentPorts): VolumeKind {
  const spec: LiveContentSpec = {
    plugin: "kubernetes.io/secret",
    handles: ({ secret }) => secret !== undefined,
    medium: "memory",
    needs: ({ pod }, { secret }) => [
      { kind: "secret", namespace: pod.metadata.namespace, name: secret?.secretName ?? "" },
    ],
    async content({ pod }, { secret: source = {} }, _context, signal) {
      const mode = requiredMode(source.defaultMode);
      const secret = await readSecret(ports, pod.metadata.namespace, source.secretName ?? "", source.optional, signal);
      return secret === undefined ? new Map() : secretContent(secret, source, mode);
    },
  };
  return liveContentKind(spec, ports);
}

export function downwardApiKind(ports: LiveContentPorts): VolumeKind {
  const spec: LiveContentSpec = {
    plugin: "kubernetes.io/downward-api",
    handles: ({ downwardAPI }) => downwardAPI !== undefined,
    medium: "memory",
    needs: () => [],
    async content({ pod }, { downwardAPI = {} }) {
      return downwardContent(
        pod,
        downwardAPI.items ?? [],
        requiredMode(downwardAPI.defaultMode),
        ports.nodeAllocatable(),
      );
    },
  };
  return liveContentKind(spec, ports);
}

export function requiredMode(mode: number | undefined): number {
  if (mode === undefined) throw new Error("no defaultMode used, not even the default value for it");
  return mode;
}

export async function readConfigMap(
  { objects }: Pick<LiveContentPorts, "objects">,
  namespace: string,
  name: string,
  optional: boolean | undefined,
  signal: AbortSignal,
): Promise<ConfigMap | undefined> {
  if (objects === undefined) throw new ObjectReadError(standalone);
  const map = await objects.read({ kind: "configmap", namespace, name }, signal);
  if (map === undefined && optional !== true) throw new ObjectReadError(`configmap "${name}" not found`);
  return map;
}

export async function readSecret(
  { objects }: Pick<LiveContentPorts, "objects">,
  namespace: string,
  name: string,
  optional: boolean | undefined,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  if (objects === undefined) throw new ObjectReadError(standalone);
  const secret = await objects.read({ kind: "secret", namespace, name }, signal);
  if (secret === undefined && optional !== true) throw new ObjectReadError(`secret "${name}" not found`);
  return secret;
}
