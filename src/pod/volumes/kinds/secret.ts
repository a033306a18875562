import type { Secret } from "../../../ground/model/index.ts";
import { secretContent } from "../content/sources.ts";
import { ObjectReadError } from "../objects/ports.ts";
import { type ContentKindPorts, type ContentKindSpec, contentKind, objectsOf, requiredMode } from "./content-kind.ts";
import type { VolumeKind } from "./kind.ts";

export function secretKind(ports: ContentKindPorts): VolumeKind {
  const spec: ContentKindSpec = {
    plugin: "kubernetes.io/secret",
    handles: ({ secret }) => secret !== undefined,
    medium: "memory",
    needs: ({ pod }, { secret }) => [
      { kind: "secret", namespace: pod.metadata.namespace, name: secret?.secretName ?? "" },
    ],
    async content({ pod }, { secret: source = {} }, context, signal) {
      const mode = requiredMode(source.defaultMode);
      const secret = await readSecret(ports, pod.metadata.namespace, source.secretName ?? "", source.optional, signal);
      context.madeFrom?.(secret?.metadata?.resourceVersion);
      return secret === undefined ? new Map() : secretContent(secret, source, mode);
    },
  };
  return contentKind(spec, ports);
}

export async function readSecret(
  ports: Pick<ContentKindPorts, "objects">,
  namespace: string,
  name: string,
  optional: boolean | undefined,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  const secret = await objectsOf(ports).read({ kind: "secret", namespace, name }, signal);
  if (secret === undefined && optional !== true) throw new ObjectReadError(`secret "${name}" not found`);
  return secret;
}
