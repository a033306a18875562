import {
  checksPods,
  labelRule,
  qualifiedRule,
  type SpoiltPod,
  subdomainRule,
} from "../../../../test/support/pod-validation.ts";
import type { Volume } from "../kube/gen/types.ts";

/** Rows of one volume each, named by its source. */
function volumes(
  rows: readonly (Omit<SpoiltPod, "name"> & { readonly volume: Omit<Volume, "name">; readonly name?: string })[],
): readonly SpoiltPod[] {
  return rows.map(({ volume, name = Object.keys(volume).join(", "), ...row }, index) => ({
    at: "spec.volumes[0]",
    ...row,
    name: `${name} (${index})`,
    pod: { ...row.pod, volumes: [{ name: "v", ...volume }] },
  }));
}

const modeRule = "must be a number between 0 and 0777 (octal), both inclusive";

checksPods("volumes", [
  {
    name: "names",
    pod: { volumes: [{ name: "" }, { name: "a.b" }, { name: "x" }, { name: "x" }] },
    wanted: [
      "spec.volumes[0].name: Required value",
      'spec.volumes[1].name: Invalid value: "a.b": must not contain dots',
      'spec.volumes[3].name: Duplicate value: "x"',
    ],
  },
  {
    name: "a claim that is made for another volume",
    pod: {
      volumes: [
        {
          name: "e",
          ephemeral: {
            volumeClaimTemplate: {
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            },
          },
        },
        { name: "p", persistentVolumeClaim: { claimName: "p-e" } },
      ],
    },
    wanted: [
      'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "p-e": must not reference a PVC that gets created for an ephemeral volume',
    ],
  },
]);

checksPods(
  "volume",
  volumes([
    {
      volume: { emptyDir: {}, hostPath: { path: "/x" }, nfs: { server: "", path: "" } },
      wanted: [
        "@.hostPath: Forbidden: may not specify more than 1 volume type",
        "@.nfs: Forbidden: may not specify more than 1 volume type",
      ],
    },
    {
      volume: { emptyDir: { sizeLimit: "-1" } },
      wanted: ["@.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
    },
    { volume: { emptyDir: { sizeLimit: "1Gi", medium: "Memory" } }, wanted: [] },
    {
      volume: { hostPath: { path: "", type: "Folder" } },
      wanted: [
        "@.hostPath.path: Required value",
        '@.hostPath.type: Unsupported value: "Folder": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
      ],
    },
    {
      volume: { hostPath: { path: "/a/../b" } },
      wanted: ["@.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
    },
    { volume: { hostPath: { path: "/a..b" } }, wanted: [] },
    {
      volume: { gitRepo: { repository: "", directory: "/d" } },
      wanted: [
        "@.gitRepo.repository: Required value",
        '@.gitRepo.directory: Invalid value: "/d": must be a relative path',
      ],
    },
    {
      volume: {
        secret: {
          defaultMode: 0o1000,
          items: [
            { key: "", path: "", mode: -1 },
            { key: "k", path: "..x" },
          ],
        },
      },
      wanted: [
        "@.secret.secretName: Required value",
        `@.secret.defaultMode: Invalid value: 512: ${modeRule}`,
        "@.secret.items[0].key: Required value",
        "@.secret.items[0].path: Required value",
        `@.secret.items[0].mode: Invalid value: -1: ${modeRule}`,
        "@.secret.items[1].path: Invalid value: \"..x\": must not start with '..'",
      ],
    },
    {
      volume: { configMap: { name: "", defaultMode: -1, items: [{ key: "k", path: "/abs" }] } },
      wanted: [
        "@.configMap.name: Required value",
        `@.configMap.defaultMode: Invalid value: -1: ${modeRule}`,
        '@.configMap.items[0].path: Invalid value: "/abs": must be a relative path',
      ],
    },
    {
      volume: {
        downwardAPI: {
          defaultMode: 1000,
          items: [
            { path: "" },
            { path: "a/../b", mode: 1000, fieldRef: { fieldPath: "spec.nodeName" } },
            {
              path: "both",
              fieldRef: { fieldPath: "metadata.labels" },
              resourceFieldRef: { resource: "limits.cpu" },
            },
          ],
        },
      },
      wanted: [
        `@.downwardAPI.defaultMode: Invalid value: 1000: ${modeRule}`,
        "@.downwardAPI.items[0].path: Required value",
        "@.downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required",
        "@.downwardAPI.items[1].path: Invalid value: \"a/../b\": must not contain '..'",
        '@.downwardAPI.items[1].fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
        `@.downwardAPI.items[1].mode: Invalid value: 1000: ${modeRule}`,
        "@.downwardAPI.items[2].resourceFieldRef.containerName: Required value",
        '@.downwardAPI.items[2]: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
      ],
    },
    {
      volume: { nfs: { server: "", path: "x" } },
      wanted: ["@.nfs.server: Required value", '@.nfs.path: Invalid value: "x": must be an absolute path'],
    },
    {
      volume: { persistentVolumeClaim: { claimName: "" } },
      wanted: ["@.persistentVolumeClaim.claimName: Required value"],
    },
    {
      volume: { iscsi: { targetPortal: "", iqn: "", lun: 256, chapAuthSession: true, initiatorName: "x" } },
      wanted: [
        "@.iscsi.targetPortal: Required value",
        "@.iscsi.iqn: Required value",
        "@.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
        "@.iscsi.secretRef: Required value",
        '@.iscsi.initiatorName: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
      ],
    },
    {
      volume: { iscsi: { targetPortal: "p", iqn: "iqn.2015", lun: 0 } },
      wanted: ['@.iscsi.iqn: Invalid value: "iqn.2015": must be valid format'],
    },
    {
      volume: {
        iscsi: {
          targetPortal: "p".repeat(70),
          iqn: "iqn.2015-02.example.com:test",
          lun: 0,
          initiatorName: "eui.0123456789abcdef",
        },
      },
      wanted: [
        '@.name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.',
      ],
    },
    { volume: { iscsi: { targetPortal: "p", iqn: "naa.0123456789abcdef", lun: 0 } }, wanted: [] },
    {
      volume: { fc: {} },
      wanted: ["@.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"],
    },
    {
      volume: { fc: { targetWWNs: ["a"], wwids: ["b"] } },
      wanted: [
        '@.fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously',
        "@.fc.lun: Required value: lun is required if targetWWNs is specified",
      ],
    },
    {
      volume: { fc: { targetWWNs: ["a"], lun: -1 } },
      wanted: ["@.fc.lun: Invalid value: -1: must be between 0 and 255, inclusive"],
    },
    {
      volume: { flexVolume: { driver: "", options: { "x.kubernetes.io/a": "1", k8s: "1", "K8S.io": "1" } } },
      wanted: [
        "@.flexVolume.driver: Required value",
        '@.flexVolume.options[x.kubernetes.io/a]: Invalid value: "x.kubernetes.io/a": kubernetes.io and k8s.io namespaces are reserved',
        '@.flexVolume.options[K8S.io]: Invalid value: "K8S.io": kubernetes.io and k8s.io namespaces are reserved',
      ],
    },
    {
      volume: { rbd: { monitors: [], image: "" } },
      wanted: ["@.rbd.monitors: Required value", "@.rbd.image: Required value"],
    },
    { volume: { cephfs: { monitors: [] } }, wanted: ["@.cephfs.monitors: Required value"] },
    {
      volume: { csi: { driver: "Bad_Driver", nodePublishSecretRef: {} } },
      wanted: [
        `@.csi.driver: Invalid value: "Bad_Driver": ${subdomainRule}`,
        "@.csi.nodePublishSecretRef.name: Required value",
      ],
    },
    {
      volume: { csi: { driver: "a".repeat(64), nodePublishSecretRef: { name: "S" } } },
      wanted: [
        "@.csi.driver: Too long: may not be more than 63 bytes",
        `@.csi.nodePublishSecretRef.name: Invalid value: "S": ${subdomainRule}`,
      ],
    },
    { volume: { csi: { driver: "" } }, wanted: ["@.csi.driver: Required value"] },
    {
      volume: { image: { pullPolicy: "Now" } },
      wanted: [
        "@.image.reference: Required value",
        '@.image.pullPolicy: Unsupported value: "Now": supported values: "Always", "IfNotPresent", "Never"',
      ],
    },
    {
      volume: { gcePersistentDisk: { pdName: "", partition: 300 } },
      wanted: [
        "@.gcePersistentDisk.pdName: Required value",
        "@.gcePersistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive",
      ],
    },
    {
      volume: { awsElasticBlockStore: { volumeID: "", partition: -1 } },
      wanted: [
        "@.awsElasticBlockStore.volumeID: Required value",
        "@.awsElasticBlockStore.partition: Invalid value: -1: must be between 1 and 255, inclusive",
      ],
    },
    {
      volume: { glusterfs: { endpoints: "", path: "" } },
      wanted: ["@.glusterfs.endpoints: Required value", "@.glusterfs.path: Required value"],
    },
    {
      volume: { flocker: {} },
      wanted: ["@.flocker: Required value: one of datasetName and datasetUUID is required"],
    },
    {
      volume: { flocker: { datasetName: "a/b", datasetUUID: "u" } },
      wanted: [
        '@.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously',
        "@.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
      ],
    },
    {
      volume: { cinder: { volumeID: "", secretRef: {} } },
      wanted: ["@.cinder.volumeID: Required value", "@.cinder.secretRef.name: Required value"],
    },
    {
      volume: { quobyte: { registry: "", volume: "", tenant: "t".repeat(65) } },
      wanted: [
        "@.quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas",
        "@.quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters",
        "@.quobyte.volume: Required value",
      ],
    },
    {
      volume: { quobyte: { registry: "a:1,[::1]:2,b", volume: "v" } },
      wanted: [
        '@.quobyte.registry: Invalid value: "a:1,[::1]:2,b": must be a host:port pair or multiple pairs separated by commas',
      ],
    },
    {
      volume: { azureFile: { secretName: "", shareName: "" } },
      wanted: ["@.azureFile.secretName: Required value", "@.azureFile.shareName: Required value"],
    },
    {
      volume: { azureDisk: { diskName: "", diskURI: "", cachingMode: "x", kind: "y" } },
      wanted: [
        "@.azureDisk.diskName: Required value",
        "@.azureDisk.diskURI: Required value",
        '@.azureDisk.cachingMode: Unsupported value: "x": supported values: "None", "ReadOnly", "ReadWrite"',
        '@.azureDisk.kind: Unsupported value: "y": supported values: "Dedicated", "Managed", "Shared"',
        '@.azureDisk.diskURI: Unsupported value: "": supported values: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"',
      ],
    },
    {
      volume: { azureDisk: { diskName: "d", diskURI: "https://x", kind: "Managed" } },
      wanted: [
        '@.azureDisk.diskURI: Unsupported value: "https://x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
      ],
    },
    { volume: { vsphereVolume: { volumePath: "" } }, wanted: ["@.vsphereVolume.volumePath: Required value"] },
    { volume: { photonPersistentDisk: { pdID: "" } }, wanted: ["@.photonPersistentDisk.pdID: Required value"] },
    { volume: { portworxVolume: { volumeID: "" } }, wanted: ["@.portworxVolume.volumeID: Required value"] },
    {
      volume: { scaleIO: { gateway: "", system: "", secretRef: {} } },
      wanted: [
        "@.scaleIO.gateway: Required value",
        "@.scaleIO.system: Required value",
        "@.scaleIO.volumeName: Required value",
      ],
    },
    {
      volume: { storageos: { volumeNamespace: "A", secretRef: {} } },
      wanted: [
        "@.storageos.volumeName: Required value",
        `@.storageos.volumeNamespace: Invalid value: "A": ${labelRule}`,
        "@.storageos.secretRef.name: Required value",
      ],
    },
  ]),
);

checksPods(
  "projected volume",
  volumes([
    {
      name: "sources",
      volume: {
        projected: {
          defaultMode: -1,
          sources: [
            { secret: { name: "", items: [{ key: "", path: "a" }] } },
            { configMap: { name: "", items: [{ key: "k", path: "a" }] } },
            { secret: { name: "s" }, configMap: { name: "m" } },
            { downwardAPI: { items: [{ path: "a", fieldRef: { fieldPath: "metadata.name" } }] } },
          ],
        },
      },
      wanted: [
        `@.projected.defaultMode: Invalid value: -1: ${modeRule}`,
        "@.projected.sources[0].secret.name: Required value",
        "@.projected.sources[0].secret.items[0].key: Required value",
        "@.projected.sources[1].configMap.name: Required value",
        '@.projected: Invalid value: "a": conflicting duplicate paths',
        "@.projected.sources[2]: Forbidden: may not specify more than 1 volume type per source",
        '@.projected: Invalid value: "a": conflicting duplicate paths',
      ],
    },
    {
      name: "tokens",
      volume: {
        projected: {
          sources: [
            { serviceAccountToken: { path: "", expirationSeconds: 599 } },
            { serviceAccountToken: { path: "../x", expirationSeconds: 2 ** 32 + 1 } },
          ],
        },
      },
      wanted: [
        "@.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        "@.projected.sources[0].serviceAccountToken.path: Required value",
        "@.projected.sources[1].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        "@.projected.sources[1].serviceAccountToken.path: Invalid value: \"../x\": must not contain '..'",
        "@.projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
        "@.projected.sources[1].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
      ],
    },
    {
      name: "trust bundles",
      volume: {
        projected: {
          sources: [
            { clusterTrustBundle: { path: "a" } },
            { clusterTrustBundle: { path: "", name: "", labelSelector: {} } },
            { clusterTrustBundle: { path: "b", name: "B", labelSelector: {} } },
            { clusterTrustBundle: { path: "c", name: "x", signerName: "bad" } },
            { clusterTrustBundle: { path: "d", signerName: "" } },
          ],
        },
      },
      wanted: [
        "@.projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified",
        "@.projected.sources[1].clusterTrustBundle.name: Required value: must be a valid object name",
        "@.projected.sources[1].clusterTrustBundle.path: Required value",
        `@.projected.sources[2].clusterTrustBundle.name: Invalid value: "B": not a valid clustertrustbundlename: ${subdomainRule}`,
        "@.projected.sources[2].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified",
        '@.projected.sources[3].clusterTrustBundle: Invalid value: {"path":"c","name":"x","signerName":"bad"}: only one of name and signerName may be used',
        "@.projected.sources[3].clusterTrustBundle.signerName: Invalid value: \"bad\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
        "@.projected.sources[4].clusterTrustBundle.signerName: Required value: must be a valid signer name",
      ],
    },
    {
      name: "pod certificates",
      volume: {
        projected: {
          sources: [
            { podCertificate: { signerName: "example.com/s", keyType: "RSA1", maxExpirationSeconds: 1 } },
            {
              podCertificate: {
                signerName: "example.com/s",
                keyType: "ED25519",
                keyPath: "/k",
                maxExpirationSeconds: 10_000_000,
              },
            },
          ],
        },
      },
      wanted: [
        '@.projected.sources[0].podCertificate.keyType: Unsupported value: "RSA1": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"',
        "@.projected.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 1: if provided, maxExpirationSeconds must be >= 3600",
        "@.projected.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
        "@.projected.sources[1].podCertificate.maxExpirationSeconds: Invalid value: 10000000: if provided, maxExpirationSeconds must be <= 7862400",
        '@.projected.sources[1].podCertificate.keyPath: Invalid value: "/k": must be a relative path',
      ],
    },
  ]),
);

checksPods(
  "ephemeral volume",
  volumes([
    { volume: { ephemeral: {} }, wanted: ["@.ephemeral.volumeClaimTemplate: Required value"] },
    {
      volume: {
        ephemeral: {
          volumeClaimTemplate: {
            metadata: { name: "x", labels: { "a b": "" } },
            spec: {
              accessModes: ["ReadWriteOncePod", "Often"],
              storageClassName: "S",
              volumeMode: "Tape",
              selector: { matchLabels: { "-": "" } },
              dataSource: { name: "", kind: "" },
              dataSourceRef: { name: "n", kind: "K", apiGroup: "G", namespace: "N" },
            },
          },
        },
      },
      wanted: [
        `@.metadata.labels: Invalid value: "a b": name part ${qualifiedRule}`,
        "@.metadata.name: Forbidden: cannot be set",
        '@.spec.accessModes: Unsupported value: "Often": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
        "@.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        `@.spec.selector.matchLabels: Invalid value: "-": name part ${qualifiedRule}`,
        "@.spec.resources[storage]: Required value",
        `@.spec.storageClassName: Invalid value: "S": ${subdomainRule}`,
        '@.spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
        "@.spec.dataSource.name: Required value",
        "@.spec.dataSource.kind: Required value",
        "@.spec.dataSource: Invalid value: \"\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
        `@.spec.dataSourceRef.apiGroup: Invalid value: "G": ${subdomainRule}`,
        `@.spec.dataSourceRef.namespace: Invalid value: "N": ${labelRule}`,
      ],
      at: "spec.volumes[0].ephemeral.volumeClaimTemplate",
    },
    {
      volume: { ephemeral: { volumeClaimTemplate: { spec: { resources: { requests: { storage: "0" } } } } } },
      metadata: { name: "p".repeat(253) },
      wanted: [
        "@.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
        '@.ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "0": must be greater than zero',
        /^spec.volumes\[0\].name: Invalid value: "v": PVC name "p+-v": must be no more than 253 characters$/,
      ],
    },
  ]),
);
