import { defaultPullPolicy } from "./image-reference.ts";
import type { DownwardAPIVolumeFile, Volume, VolumeProjection } from "./kube/gen/types.ts";
import { defaultFieldRef, roundedResources } from "./pod-defaults-container.ts";

const defaultFileMode = 0o644;
const serviceAccountTokenSeconds = 3600;

export function defaultVolume(volume: Volume): Volume {
  const { name, ...sources } = volume;
  if (Object.values(sources).every((source) => source === undefined)) return { name, emptyDir: {} };
  return {
    ...volume,
    ...(volume.hostPath && { hostPath: { ...volume.hostPath, type: volume.hostPath.type ?? "" } }),
    ...(volume.configMap && { configMap: withMode(volume.configMap) }),
    ...(volume.secret && { secret: withMode(volume.secret) }),
    ...(volume.downwardAPI && {
      downwardAPI: { ...withMode(volume.downwardAPI), ...downwardFiles(volume.downwardAPI) },
    }),
    ...(volume.projected && {
      projected: {
        ...withMode(volume.projected),
        ...(volume.projected.sources && { sources: volume.projected.sources.map(defaultProjection) }),
      },
    }),
    ...(volume.image && {
      image: {
        ...volume.image,
        pullPolicy: volume.image.pullPolicy || defaultPullPolicy(volume.image.reference ?? ""),
      },
    }),
    ...defaultNetworkDisk(volume),
    ...defaultClaimTemplate(volume),
  };
}

function withMode<Source extends { readonly defaultMode?: number | undefined }>(source: Source): Source {
  return { ...source, defaultMode: source.defaultMode ?? defaultFileMode };
}

interface DownwardFiles {
  readonly items?: readonly DownwardAPIVolumeFile[] | undefined;
}

function downwardFiles({ items }: DownwardFiles): DownwardFiles {
  if (items === undefined) return {};
  return {
    items: items.map((item) => (item.fieldRef ? { ...item, fieldRef: defaultFieldRef(item.fieldRef) } : item)),
  };
}

function defaultProjection(projection: VolumeProjection): VolumeProjection {
  const { serviceAccountToken: token, downwardAPI } = projection;
  return {
    ...projection,
    ...(token && {
      serviceAccountToken: { ...token, expirationSeconds: token.expirationSeconds ?? serviceAccountTokenSeconds },
    }),
    ...(downwardAPI && { downwardAPI: { ...downwardAPI, ...downwardFiles(downwardAPI) } }),
  };
}

function defaultNetworkDisk({ iscsi, rbd, azureDisk, scaleIO }: Volume): Partial<Volume> {
  return {
    ...(iscsi && { iscsi: { ...iscsi, iscsiInterface: iscsi.iscsiInterface || "default" } }),
    ...(rbd && {
      rbd: {
        ...rbd,
        pool: rbd.pool || "rbd",
        user: rbd.user || "admin",
        keyring: rbd.keyring || "/etc/ceph/keyring",
      },
    }),
    ...(azureDisk && {
      azureDisk: {
        ...azureDisk,
        cachingMode: azureDisk.cachingMode ?? "ReadWrite",
        fsType: azureDisk.fsType ?? "ext4",
        readOnly: azureDisk.readOnly ?? false,
        kind: azureDisk.kind ?? "Shared",
      },
    }),
    ...(scaleIO && {
      scaleIO: {
        ...scaleIO,
        storageMode: scaleIO.storageMode || "ThinProvisioned",
        fsType: scaleIO.fsType || "xfs",
      },
    }),
  };
}

function defaultClaimTemplate({ ephemeral }: Volume): Partial<Volume> {
  const template = ephemeral?.volumeClaimTemplate;
  // Without a spec it is found wrong later.
  if (template?.spec === undefined) return {};
  const { volumeMode = "Filesystem", resources } = template.spec;
  const spec = { ...template.spec, volumeMode, ...(resources && { resources: roundedResources(resources) }) };
  return { ephemeral: { ...ephemeral, volumeClaimTemplate: { ...template, spec } } };
}
