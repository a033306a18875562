import type { Secret } from "../../../ground/model/index.ts";
import { secretContent } from "../content/sources.ts";
import { ObjectReadError } from "../objects/ports.ts";
import type { VolumeKind } from "./kind.ts";
import {
  type LiveContentPorts,
  type LiveContentSpec,
  liveContentKind,
  objectsOf,
  requiredMode,
} from "./live-content.ts";

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

export async function readSecret(
  ports: Pick<LiveContentPorts, "objects">,
  namespace: string,
  name: string,
  optional: boolean | undefined,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  const secret = await objectsOf(ports).read({ kind: "secret", namespace, name }, signal);
  if (secret === undefined && optional !== true) throw new ObjectReadError(`secret "${name}" not found`);
  return secret;
}
