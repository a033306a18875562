import type { Container, Pod, ServiceAccount } from "../../../ground/model/index.ts";
import { pods, serviceAccounts } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { randomSuffix } from "../rest/names.ts";
import type { World } from "../rest/world.ts";
import { forbidden } from "../status-error.ts";

type PodSpec = NonNullable<Pod["spec"]>;

const tokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";
export const rootCaConfigMap = "kube-root-ca.crt";

/** Gives the pod its service account and, unless that is unwanted, a volume with a token of it in every container. */
export function withServiceAccount(object: ApiObject, world: World): ApiObject {
  const spec = object["spec"] as PodSpec;
  const name = spec.serviceAccountName || "default";
  const namespace = object.metadata.namespace ?? "";
  const account = world.store.get(serviceAccounts.storage, keyOf(namespace, name)) as ServiceAccount | undefined;
  if (account === undefined) {
    const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
    throw forbidden(pods, object.metadata.name ?? "", why);
  }
  const pullSecrets = spec.imagePullSecrets ?? account.imagePullSecrets;
  const named: PodSpec = {
    ...spec,
    serviceAccountName: name,
    serviceAccount: name,
    ...(pullSecrets !== undefined && { imagePullSecrets: pullSecrets }),
  };
  const wantsToken = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  return { ...object, spec: wantsToken ? withToken(named) : named };
}

function withToken(spec: PodSpec): PodSpec {
  const lacks = ({ volumeMounts = [] }: Container): boolean =>
    !volumeMounts.some(({ mountPath }) => mountPath === tokenDirectory);
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  if (!containers.some(lacks)) return spec;
  const volume = tokenVolume();
  const mount = { name: volume.name, readOnly: true, mountPath: tokenDirectory };
  const mounted = (container: Container): Container =>
    lacks(container) ? { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] } : container;
  return {
    ...spec,
    volumes: [...(spec.volumes ?? []), volume],
    containers: spec.containers.map(mounted),
    ...(spec.initContainers !== undefined && { initContainers: spec.initContainers.map(mounted) }),
  };
}

function tokenVolume(): NonNullable<PodSpec["volumes"]>[number] {
  return {
    name: `kube-api-access-${randomSuffix()}`,
    projected: {
      sources: [
        // A little over an hour, so that it can be told from tokens that were asked for by hand.
        { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
        { configMap: { name: rootCaConfigMap, items: [{ key: "ca.crt", path: "ca.crt" }] } },
        {
          downwardAPI: {
            items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
          },
        },
      ],
      defaultMode: 0o644,
    },
  };
}
