import {
  type CsiCapabilities,
  VolumeCapability_AccessMode_Mode as Mode,
  VolumeCapability,
} from "../../../connections/plugins/index.ts";
import type { CSIDriver, SecretReference } from "../../../ground/model/index.ts";
import type { WantedVolume } from "../kinds/kind.ts";
import type { CsiVolume } from "./csi-volume.ts";
import type { CsiPorts } from "./ports.ts";

const prefix = "csi.storage.k8s.io/";

/** How the volume is to be used, in the driver's terms. */
export function capabilityOf(
  volume: CsiVolume,
  form: "filesystem" | "block",
  capabilities: CsiCapabilities,
  group: number | undefined,
): VolumeCapability {
  const accessMode = { mode: modeOf(volume.accessModes[0] ?? "ReadWriteOnce", capabilities) };
  if (form === "block") return VolumeCapability.fromPartial({ block: {}, accessMode });
  const volumeMountGroup = capabilities.mountGroup && group !== undefined ? String(group) : "";
  const mount = { fsType: volume.fsType, mountFlags: [...volume.mountFlags], volumeMountGroup };
  return VolumeCapability.fromPartial({ mount, accessMode });
}

function modeOf(mode: string, { singleNodeMultiWriter }: CsiCapabilities): Mode {
  switch (mode) {
    case "ReadOnlyMany":
      return Mode.MULTI_NODE_READER_ONLY;
    case "ReadWriteMany":
      return Mode.MULTI_NODE_MULTI_WRITER;
    case "ReadWriteOncePod":
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_SINGLE_WRITER : Mode.SINGLE_NODE_WRITER;
    default:
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_MULTI_WRITER : Mode.SINGLE_NODE_WRITER;
  }
}

/** Whether the agent gives the files to the pod's group after publishing; a driver may do that by itself, or forbid it. */
export function changesGroup(
  volume: CsiVolume,
  driver: CSIDriver | undefined,
  { mountGroup }: CsiCapabilities,
): boolean {
  if (mountGroup || volume.readOnly) return false;
  switch (driver?.spec.fsGroupPolicy) {
    case "None":
      return false;
    case "File":
      return true;
    default:
      return (
        volume.fsType !== "" &&
        volume.accessModes.some((mode) => mode === "ReadWriteOnce" || mode === "ReadWriteOncePod")
      );
  }
}

/** Throws when the driver does not offer volumes of this life: without an object that says so, only persistent ones. */
export function checkVolumeLifecycle({ lifecycle, driver: name }: CsiVolume, driver: CSIDriver | undefined): void {
  const modes = driver?.spec.volumeLifecycleModes ?? ["Persistent"];
  if (modes.includes(lifecycle)) return;
  const offered = `only supports [${modes.map((mode) => JSON.stringify(mode)).join(" ")}]`;
  const why = driver === undefined ? "no CSIDriver object" : offered;
  throw new Error(`volume mode "${lifecycle}" not supported by driver ${name} (${why})`);
}

export async function secretsOf(
  reference: SecretReference | undefined,
  { cluster }: CsiPorts,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (reference?.name === undefined) return {};
  const { namespace = "", name } = reference;
  const secret = await cluster.secret(namespace, name, signal);
  if (secret === undefined) throw new Error(`failed to get secret ${namespace}/${name}: secrets "${name}" not found`);
  const entries = Object.entries(secret.data ?? {});
  return Object.fromEntries(entries.map(([key, encoded]) => [key, Buffer.from(encoded, "base64").toString("utf8")]));
}

/** What the driver learns of the volume and, if it asks for it, of the pod. `refreshAt`: when its tokens want renewal. */
export async function volumeContextOf(
  wanted: WantedVolume,
  volume: CsiVolume,
  driver: CSIDriver | undefined,
  ports: CsiPorts,
  signal: AbortSignal,
): Promise<{ readonly context: Record<string, string>; readonly refreshAt: number | undefined }> {
  const context: Record<string, string> = { ...volume.attributes };
  const { name, namespace, uid } = wanted.pod.metadata;
  const serviceAccount = wanted.pod.spec.serviceAccountName ?? "";
  if (driver?.spec.podInfoOnMount === true) {
    context[`${prefix}pod.name`] = name;
    context[`${prefix}pod.namespace`] = namespace;
    context[`${prefix}pod.uid`] = uid;
    context[`${prefix}serviceAccount.name`] = serviceAccount;
    context[`${prefix}ephemeral`] = String(volume.lifecycle === "Ephemeral");
  }
  const requests = driver?.spec.tokenRequests ?? [];
  if (requests.length === 0) return { context, refreshAt: undefined };
  let refreshAt = Number.POSITIVE_INFINITY;
  const tokens: Record<string, { readonly token: string; readonly expirationTimestamp: string }> = {};
  for (const { audience, expirationSeconds } of requests) {
    const granted = await ports.tokens.get(
      namespace,
      serviceAccount,
      {
        audiences: audience === "" ? [] : [audience],
        ...(expirationSeconds !== undefined && { expirationSeconds }),
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
      signal,
    );
    tokens[audience] = { token: granted.token, expirationTimestamp: granted.expirationTimestamp };
    refreshAt = Math.min(refreshAt, granted.refreshAt);
  }
  context[`${prefix}serviceAccount.tokens`] = JSON.stringify(tokens);
  return { context, refreshAt };
}
