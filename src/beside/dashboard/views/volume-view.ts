import { withDeadline } from "../../../ground/base/index.ts";
import { type Pod, type PodUid, tryParseQuantity, type Volume, wholeUnits } from "../../../ground/model/index.ts";
import type { DashboardPorts, VolumeShown } from "../ports.ts";
import type { Tone, VolumeView } from "../wire.ts";

/** Volumes may lie on file systems that hang; a page does not wait for them. */
const measuredWithinMs = 300;

export async function volumeViews(
  pod: Pod,
  { pods, clock }: Pick<DashboardPorts, "pods" | "clock">,
  signal: AbortSignal,
): Promise<readonly VolumeView[]> {
  const uid = pod.metadata?.uid as PodUid;
  const known = new Map(pods.volumes(uid).map((volume) => [volume.name, volume]));
  const late = (): Error => new Error("measuring takes long");
  const measured = await withDeadline(clock, measuredWithinMs, late, signal, (bounded) =>
    pods.measureVolumes(uid, bounded),
  ).catch(() => []);
  const usageOf = new Map(measured.map(({ name, usage }) => [name, usage]));
  return (pod.spec?.volumes ?? []).map((volume) => {
    const usage = usageOf.get(volume.name);
    return {
      ...volumeView(volume, known.get(volume.name)),
      usedBytes: usage && Number(usage.usedBytes),
      capacityBytes: usage && Number(usage.capacityBytes),
    };
  });
}

function volumeView(volume: Volume, shown: VolumeShown | undefined): Omit<VolumeView, "usedBytes" | "capacityBytes"> {
  const { name, kind, source } = sourceOf(volume);
  const limit = volume.emptyDir?.sizeLimit;
  const amount = limit === undefined ? undefined : tryParseQuantity(String(limit));
  return {
    name,
    kind,
    source: shown?.persistentVolume === undefined ? source : `${source} (${shown.persistentVolume})`,
    state: shown?.step ?? "not used",
    tone: tones[shown?.step ?? "waiting"],
    detail: shown?.detail ?? "",
    version: shown?.version,
    limitBytes: amount === undefined ? undefined : Number(wholeUnits(amount)),
  };
}

const tones: Readonly<Record<VolumeShown["step"], Tone>> = {
  waiting: "over",
  mounting: "busy",
  failed: "bad",
  mounted: "good",
};

/** The one field beside the name says what it is. */
function sourceOf(volume: Volume): { readonly name: string; readonly kind: string; readonly source: string } {
  const { name, ...rest } = volume;
  const kind = Object.entries(rest).find(([, value]) => value !== undefined)?.[0] ?? "emptyDir";
  const { configMap, secret, hostPath, persistentVolumeClaim, csi, image, nfs, emptyDir, projected } = volume;
  const source =
    configMap?.name ??
    secret?.secretName ??
    hostPath?.path ??
    persistentVolumeClaim?.claimName ??
    csi?.driver ??
    image?.reference ??
    (nfs && `${nfs.server}:${nfs.path}`) ??
    emptyDir?.medium ??
    (projected?.sources ?? []).flatMap((each) => Object.keys(each)).join(", ");
  return { name, kind, source: source ?? "" };
}
