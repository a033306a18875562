import assert from "node:assert/strict";
import { test } from "node:test";
import { type Container, describeProblem, type PodSpec, type Volume } from "../../ground/model/index.ts";
import { type ApiReferencePolicy, apiReferenceProblem } from "./api-references.ts";

const strict: ApiReferencePolicy = { prevent: true, allow: [] };

function problemOf(spec: Partial<PodSpec>, policy: ApiReferencePolicy = strict): string | undefined {
  const problem = apiReferenceProblem({ spec: { containers: [], ...spec } }, policy);
  return problem === undefined ? undefined : describeProblem(problem);
}

const container = (fields: Partial<Container>): Container => ({ name: "c", ...fields });
const volume = (source: Omit<Volume, "name">): Partial<PodSpec> => ({ volumes: [{ name: "v", ...source }] });
const secretRef = { name: "s" };

for (const { spec, field, resource } of [
  { spec: { serviceAccountName: "a" }, field: "spec.serviceAccountName", resource: "serviceaccounts" },
  { spec: { imagePullSecrets: [{ name: "s" }] }, field: "spec.imagePullSecrets[0]", resource: "secrets" },
  {
    spec: { containers: [container({ env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] })] },
    field: "spec.containers[0].env[0].valueFrom.secretKeyRef",
    resource: "secrets",
  },
  {
    spec: { initContainers: [container({ envFrom: [{ secretRef }] })] },
    field: "spec.initContainers[0].envFrom[0].secretRef",
    resource: "secrets",
  },
  { spec: volume({ secret: { secretName: "s" } }), field: "spec.volumes[0].secret", resource: "secrets" },
  {
    spec: volume({ projected: { sources: [{ secret: { name: "s" } }] } }),
    field: "spec.volumes[0].projected.sources[0].secret",
    resource: "secrets",
  },
  {
    spec: volume({ azureFile: { secretName: "s", shareName: "x" } }),
    field: "spec.volumes[0].azureFile.secretName",
    resource: "secrets",
  },
  {
    spec: volume({ cephfs: { monitors: [], secretRef } }),
    field: "spec.volumes[0].cephfs.secretRef",
    resource: "secrets",
  },
  {
    spec: volume({ cinder: { volumeID: "x", secretRef } }),
    field: "spec.volumes[0].cinder.secretRef",
    resource: "secrets",
  },
  {
    spec: volume({ flexVolume: { driver: "d", secretRef } }),
    field: "spec.volumes[0].flexVolume.secretRef",
    resource: "secrets",
  },
  {
    spec: volume({ rbd: { monitors: [], image: "i", secretRef } }),
    field: "spec.volumes[0].rbd.secretRef",
    resource: "secrets",
  },
  {
    spec: volume({ scaleIO: { gateway: "g", system: "s", secretRef } }),
    field: "spec.volumes[0].scaleIO.secretRef",
    resource: "secrets",
  },
  {
    spec: volume({ iscsi: { targetPortal: "p", iqn: "q", lun: 0, secretRef } }),
    field: "spec.volumes[0].iscsi.secretRef",
    resource: "secrets",
  },
  { spec: volume({ storageos: { secretRef } }), field: "spec.volumes[0].storageos.secretRef", resource: "secrets" },
  {
    spec: volume({ csi: { driver: "d", nodePublishSecretRef: secretRef } }),
    field: "spec.volumes[0].csi.nodePublishSecretRef",
    resource: "secrets",
  },
  {
    spec: {
      containers: [container({ env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "m", key: "k" } } }] })],
    },
    field: "spec.containers[0].env[0].valueFrom.configMapKeyRef",
    resource: "configmaps",
  },
  {
    spec: { ephemeralContainers: [container({ envFrom: [{ configMapRef: { name: "m" } }] })] },
    field: "spec.ephemeralContainers[0].envFrom[0].configMapRef",
    resource: "configmaps",
  },
  { spec: volume({ configMap: { name: "m" } }), field: "spec.volumes[0].configMap", resource: "configmaps" },
  {
    spec: volume({ projected: { sources: [{ configMap: { name: "m" } }] } }),
    field: "spec.volumes[0].projected.sources[0].configMap",
    resource: "configmaps",
  },
  { spec: { resourceClaims: [{ name: "r" }] }, field: "spec.resourceClaims", resource: "resourceclaims" },
  { spec: volume({ csi: { driver: "d" } }), field: "spec.volumes[0].csi", resource: "csidrivers (via CSI volumes)" },
  {
    spec: volume({ glusterfs: { endpoints: "e", path: "p" } }),
    field: "spec.volumes[0].glusterfs",
    resource: "endpoints (via glusterFS volumes)",
  },
  {
    spec: volume({ persistentVolumeClaim: { claimName: "c" } }),
    field: "spec.volumes[0].persistentVolumeClaim",
    resource: "persistentvolumeclaims",
  },
  {
    spec: volume({ ephemeral: {} }),
    field: "spec.volumes[0].ephemeral",
    resource: "persistentvolumeclaims (via ephemeral volumes)",
  },
  {
    spec: volume({ azureFile: { secretName: "", shareName: "x" } }),
    field: "spec.volumes[0].azureFile",
    resource: "secrets (via azureFile volumes)",
  },
  {
    spec: volume({ projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }),
    field: "spec.volumes[0].projected.sources[0].serviceAccountToken",
    resource: "serviceaccounts (via projected volumes)",
  },
  {
    spec: volume({ projected: { sources: [{ downwardAPI: {} }, { clusterTrustBundle: { path: "p" } }] } }),
    field: "spec.volumes[0].projected.sources[1].clusterTrustBundle",
    resource: "clustertrustbundles",
  },
  {
    spec: volume({ projected: { sources: [{ podCertificate: { keyType: "k", signerName: "s" } }] } }),
    field: "spec.volumes[0].projected.sources[0].podCertificate",
    resource: "podcertificates",
  },
] as const) {
  test(`${field} refers to ${resource}`, () => {
    assert.equal(problemOf(spec), `${field}: static pods may not reference ${resource}`);
  });
}

for (const source of [
  { emptyDir: {} },
  { hostPath: { path: "/x" } },
  { downwardAPI: {} },
  { projected: { sources: [{ downwardAPI: {} }] } },
  { image: { reference: "r" } },
  { nfs: { server: "s", path: "/p" } },
  { iscsi: { targetPortal: "p", iqn: "q", lun: 0 } },
  { fc: {} },
  { awsElasticBlockStore: { volumeID: "v" } },
  { gitRepo: { repository: "r" } },
]) {
  test(`${Object.keys(source).join()} volumes refer to nothing`, () =>
    assert.equal(problemOf(volume(source)), undefined));
}

test("the first reason in the table wins, whatever the order in the manifest", () => {
  const everything: Partial<PodSpec> = {
    volumes: [
      { name: "a", persistentVolumeClaim: { claimName: "c" } },
      { name: "b", configMap: { name: "m" } },
      { name: "c", secret: { secretName: "s" } },
    ],
    resourceClaims: [{ name: "r" }],
  };
  assert.match(problemOf({ ...everything, serviceAccountName: "a" }) ?? "", /reference serviceaccounts$/);
  assert.match(problemOf(everything) ?? "", /reference secrets$/);
  assert.match(problemOf({ ...everything, volumes: everything.volumes?.slice(0, 2) }) ?? "", /reference configmaps$/);
  assert.match(
    problemOf({ ...everything, volumes: everything.volumes?.slice(0, 1) }) ?? "",
    /reference resourceclaims$/,
  );
});

test("config maps and secrets can be allowed one by one", () => {
  const both = {
    volumes: [
      { name: "b", configMap: { name: "m" } },
      { name: "c", secret: { secretName: "s" } },
    ],
  };
  assert.match(problemOf(both, { prevent: true, allow: ["configmaps"] }) ?? "", /reference secrets$/);
  assert.match(problemOf(both, { prevent: true, allow: ["secrets"] }) ?? "", /reference configmaps$/);
  assert.equal(problemOf(both, { prevent: true, allow: ["secrets", "configmaps"] }), undefined);
});

test("with the gate off only trust bundles and resource claims are refused", () => {
  const off: ApiReferencePolicy = { prevent: false, allow: [] };
  assert.equal(problemOf({ serviceAccountName: "a", ...volume({ secret: { secretName: "s" } }) }, off), undefined);
  assert.equal(
    problemOf(volume({ projected: { sources: [{ clusterTrustBundle: { path: "p" } }] } }), off),
    "spec.volumes[0].projected.sources[0].clusterTrustBundle: static pods may not use ClusterTrustBundle projected volume sources",
  );
  assert.equal(
    problemOf({ resourceClaims: [{ name: "r" }] }, off),
    "spec.resourceClaims: static pods may not use ResourceClaims",
  );
});
