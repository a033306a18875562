import type { Container, PodSpec, Volume, VolumeProjection } from "./kube/gen/types.ts";

/** A place where a pod refers to an object of the API. */
export interface ApiReference {
  readonly field: string;
  /** The API resource, with how it is reached where that is not obvious. */
  readonly resource: string;
  readonly kind: "configmaps" | "secrets" | "other";
}

/** Everything outside itself that a pod refers to, in the order in which the kubelet and the API server look. */
export function apiReferences(spec: PodSpec): readonly ApiReference[] {
  return [serviceAccount, secrets, configMaps, resourceClaims, volumes].flatMap((find) => find(spec));
}

function serviceAccount({ serviceAccountName, serviceAccount: oldName }: PodSpec): readonly ApiReference[] {
  return serviceAccountName || oldName
    ? [{ field: "spec.serviceAccountName", resource: "serviceaccounts", kind: "other" }]
    : [];
}

function resourceClaims({ resourceClaims: claims = [] }: PodSpec): readonly ApiReference[] {
  return claims.length > 0 ? [{ field: "spec.resourceClaims", resource: "resourceclaims", kind: "other" }] : [];
}

function secrets(spec: PodSpec): readonly ApiReference[] {
  const fields = [
    ...(spec.imagePullSecrets ?? []).map(({ name }, index) => [name, `spec.imagePullSecrets[${index}]`] as const),
    ...containers(spec).flatMap(([{ env = [], envFrom = [] }, path]) => [
      ...envFrom.map(({ secretRef }, index) => [secretRef?.name, `${path}.envFrom[${index}].secretRef`] as const),
      ...env.map(
        ({ valueFrom }, index) =>
          [valueFrom?.secretKeyRef?.name, `${path}.env[${index}].valueFrom.secretKeyRef`] as const,
      ),
    ]),
    ...(spec.volumes ?? []).flatMap((volume, index) =>
      secretsOfVolume(volume).map(([name, field]) => [name, `spec.volumes[${index}].${field}`] as const),
    ),
  ];
  return fields.filter(([name]) => name).map(([, field]) => ({ field, resource: "secrets", kind: "secrets" }));
}

type Named = readonly [name: string | undefined, field: string];

function secretsOfVolume(volume: Volume): readonly Named[] {
  const { projected } = volume;
  return [
    [volume.azureFile?.secretName, "azureFile.secretName"],
    [volume.cephfs?.secretRef?.name, "cephfs.secretRef"],
    [volume.cinder?.secretRef?.name, "cinder.secretRef"],
    [volume.flexVolume?.secretRef?.name, "flexVolume.secretRef"],
    ...(projected?.sources ?? []).map(
      ({ secret }, index): Named => [secret?.name, `projected.sources[${index}].secret`],
    ),
    [volume.rbd?.secretRef?.name, "rbd.secretRef"],
    [volume.secret?.secretName, "secret"],
    [volume.scaleIO?.secretRef?.name, "scaleIO.secretRef"],
    [volume.iscsi?.secretRef?.name, "iscsi.secretRef"],
    [volume.storageos?.secretRef?.name, "storageos.secretRef"],
    [volume.csi?.nodePublishSecretRef?.name, "csi.nodePublishSecretRef"],
  ];
}

function configMaps(spec: PodSpec): readonly ApiReference[] {
  const fields: readonly Named[] = [
    ...containers(spec).flatMap(([{ env = [], envFrom = [] }, path]): readonly Named[] => [
      ...envFrom.map(
        ({ configMapRef }, index): Named => [configMapRef?.name, `${path}.envFrom[${index}].configMapRef`],
      ),
      ...env.map(
        ({ valueFrom }, index): Named => [
          valueFrom?.configMapKeyRef?.name,
          `${path}.env[${index}].valueFrom.configMapKeyRef`,
        ],
      ),
    ]),
    ...(spec.volumes ?? []).flatMap(({ projected, configMap }, index): readonly Named[] => [
      ...(projected?.sources ?? []).map(
        (source, at): Named => [source.configMap?.name, `spec.volumes[${index}].projected.sources[${at}].configMap`],
      ),
      [configMap?.name, `spec.volumes[${index}].configMap`],
    ]),
  ];
  return fields.filter(([name]) => name).map(([, field]) => ({ field, resource: "configmaps", kind: "configmaps" }));
}

const volumeReferences = [
  ["csi", "csidrivers (via CSI volumes)"],
  ["glusterfs", "endpoints (via glusterFS volumes)"],
  ["persistentVolumeClaim", "persistentvolumeclaims"],
  ["ephemeral", "persistentvolumeclaims (via ephemeral volumes)"],
  ["azureFile", "secrets (via azureFile volumes)"],
] as const;

const projectionReferences: readonly (readonly [keyof VolumeProjection, string])[] = [
  ["serviceAccountToken", "serviceaccounts (via projected volumes)"],
  ["clusterTrustBundle", "clustertrustbundles"],
  ["podCertificate", "podcertificates"],
];

function volumes(spec: PodSpec): readonly ApiReference[] {
  return (spec.volumes ?? []).flatMap((volume, index) => {
    const path = `spec.volumes[${index}]`;
    const own = volumeReferences
      .filter(([source]) => volume[source] !== undefined)
      .map(([source, resource]): ApiReference => ({ field: `${path}.${source}`, resource, kind: "other" }));
    const projected = (volume.projected?.sources ?? []).flatMap((source, at) =>
      projectionReferences
        .filter(([kind]) => source[kind] !== undefined)
        .map(
          ([kind, resource]): ApiReference => ({
            field: `${path}.projected.sources[${at}].${kind}`,
            resource,
            kind: "other",
          }),
        ),
    );
    return [...own, ...projected];
  });
}

function containers(spec: PodSpec): readonly (readonly [Container, string])[] {
  return (["initContainers", "containers", "ephemeralContainers"] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, index) => [container, `spec.${list}[${index}]`] as const),
  );
}
