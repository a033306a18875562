import { isAbort, messageOf } from "../../../ground/base/index.ts";
import type { VolumeProjection } from "../../../ground/model/index.ts";
import { type Content, ContentError, type ContentFile } from "../content/content.ts";
import { commonUser } from "../content/pod-user.ts";
import { configMapContent, downwardContent, secretContent, together } from "../content/sources.ts";
import { trustAnchors } from "../objects/trust-bundles.ts";
import { readConfigMap } from "./config-map.ts";
import { type ContentKindPorts, type ContentKindSpec, contentKind, requiredMode } from "./content-kind.ts";
import type { Need, SetUpContext, VolumeKind, WantedVolume } from "./kind.ts";
import { readSecret } from "./secret.ts";

/** Several sources in one volume; of two that give the same path the later wins. */
export function projectedKind(ports: ContentKindPorts): VolumeKind {
  const spec: ContentKindSpec = {
    plugin: "kubernetes.io/projected",
    handles: ({ projected }) => projected !== undefined,
    medium: "memory",
    needs: ({ pod }, { projected }) =>
      (projected?.sources ?? []).flatMap((source) => needsOf(source, pod.metadata.namespace)),
    async content(wanted, { projected = {} }, context, signal) {
      const mode = requiredMode(projected.defaultMode);
      const files = new Map<string, ContentFile>();
      const problems: string[] = [];
      for (const source of projected.sources ?? []) {
        try {
          const content = await projectionContent(source, { wanted, mode, context, ports }, signal);
          for (const [path, file] of content) files.set(path, file);
        } catch (error) {
          if (isAbort(error, signal)) throw error;
          problems.push(messageOf(error));
        }
      }
      // Nothing is written if any source fails: half a volume is neither the old nor the new one.
      if (problems.length > 0) throw new ContentError(together(problems));
      return files;
    },
    lookable: (volume) => {
      const { sources = [], ...others } = volume.projected ?? {};
      const lookable = sources.filter(({ serviceAccountToken }) => serviceAccountToken === undefined);
      if (lookable.length === sources.length) return { volume };
      const note = "a token of its service account comes with it, for which nobody asks before";
      return { volume: { ...volume, projected: { ...others, sources: lookable } }, note };
    },
    onRemoved: (uid) => ports.tokens.forgetPod(uid),
  };
  return contentKind(spec, ports);
}

function needsOf({ configMap, secret, clusterTrustBundle }: VolumeProjection, namespace: string): readonly Need[] {
  return [
    ...(configMap === undefined ? [] : [{ kind: "configmap", namespace, name: configMap.name ?? "" } as const]),
    ...(secret === undefined ? [] : [{ kind: "secret", namespace, name: secret.name ?? "" } as const]),
    ...(clusterTrustBundle === undefined ? [] : [{ kind: "trustbundles" } as const]),
  ];
}

interface Projection {
  readonly wanted: WantedVolume;
  readonly mode: number;
  readonly context: SetUpContext;
  readonly ports: ContentKindPorts;
}

async function projectionContent(
  source: VolumeProjection,
  projection: Projection,
  signal: AbortSignal,
): Promise<Content> {
  const { mode, ports } = projection;
  const { pod } = projection.wanted;
  const { namespace } = pod.metadata;
  if (source.configMap !== undefined) {
    const { name = "", optional } = source.configMap;
    const map = await readConfigMap(ports, namespace, name, optional, signal);
    return map === undefined ? new Map() : configMapContent(map, source.configMap, mode);
  }
  if (source.secret !== undefined) {
    const { name = "", optional } = source.secret;
    const secret = await readSecret(ports, namespace, name, optional, signal);
    return secret === undefined ? new Map() : secretContent(secret, source.secret, mode);
  }
  if (source.downwardAPI !== undefined) {
    return downwardContent(pod, source.downwardAPI.items ?? [], mode, ports.nodeAllocatable());
  }
  if (source.serviceAccountToken !== undefined) return tokenContent(source.serviceAccountToken, projection, signal);
  if (source.clusterTrustBundle !== undefined) {
    const { clusterTrustBundle } = source;
    if (ports.trustBundles === undefined) {
      throw new ContentError("ClusterTrustBundle projection is not supported in static kubelet mode");
    }
    const bundles = await ports.trustBundles.list(signal);
    const text = trustAnchors(clusterTrustBundle, bundles, pod.metadata.uid);
    return new Map([[clusterTrustBundle.path, credentialFile(Buffer.from(text), projection)]]);
  }
  const kind = Object.keys(source)[0] ?? "no";
  throw new ContentError(`a projection of kind ${kind} is not supported by this agent`);
}

async function tokenContent(
  { path, audience, expirationSeconds }: NonNullable<VolumeProjection["serviceAccountToken"]>,
  projection: Projection,
  signal: AbortSignal,
): Promise<Content> {
  const { wanted, context, ports } = projection;
  const { name, namespace, uid } = wanted.pod.metadata;
  const { token, refreshAt } = await ports.tokens.get(
    namespace,
    wanted.pod.spec.serviceAccountName ?? "default",
    {
      audiences: audience === undefined || audience === "" ? [] : [audience],
      expirationSeconds: expirationSeconds ?? 3600,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
    },
    signal,
  );
  context.againAt(refreshAt);
  return new Map([[path, credentialFile(Buffer.from(token), projection)]]);
}

/** What proves who the pod is can be read by the pod's own user only, where there is one to give it to. */
function credentialFile(bytes: Uint8Array, { wanted, mode }: Projection): ContentFile {
  const uid = commonUser(wanted.pod);
  const isPrivate = uid !== undefined || wanted.pod.spec.securityContext?.fsGroup !== undefined;
  return { bytes, mode: isPrivate ? 0o600 : mode, uid };
}
