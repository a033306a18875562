import type { Pod, Volume } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import type { VolumesByName } from "./mounts.ts";
import { dnsLabel } from "./names.ts";
import { volumeSourceChecks } from "./volume-sources.ts";

/** Checks every volume; the result holds those that mounts may refer to. */
export function checkVolumes({ metadata, spec }: Pod, problems: ProblemList): VolumesByName {
  const volumes = spec?.volumes ?? [];
  const byName = new Map<string, Volume>();
  const createdClaims = new Set(
    volumes.filter(({ ephemeral }) => ephemeral !== undefined).map(({ name }) => `${metadata?.name}-${name}`),
  );
  for (const [index, volume] of volumes.entries()) {
    const path = `spec.volumes[${index}]`;
    checkSource(volume, metadata?.name ?? "", path, problems);
    if (volume.name === "") problems.required(`${path}.name`);
    else problems.invalidEach(`${path}.name`, volume.name, dnsLabel(volume.name));
    if (byName.has(volume.name)) problems.duplicate(`${path}.name`, volume.name);
    else byName.set(volume.name, volume);
    const claimName = volume.persistentVolumeClaim?.claimName;
    if (claimName !== undefined && createdClaims.has(claimName)) {
      problems.invalid(
        `${path}.persistentVolumeClaim.claimName`,
        claimName,
        "must not reference a PVC that gets created for an ephemeral volume",
      );
    }
  }
  return byName;
}

/** Exactly one source; the rules of that source. */
function checkSource(volume: Volume, podName: string, path: string, problems: ProblemList): void {
  const kinds = Object.keys(volumeSourceChecks).filter((kind) => volume[kind as keyof Volume] !== undefined);
  if (kinds.length === 0) problems.required(path, "must specify a volume type");
  for (const kind of kinds.slice(1)) {
    problems.forbidden(`${path}.${kind}`, "may not specify more than 1 volume type");
  }
  const [kind] = kinds;
  if (kind !== undefined) volumeSourceChecks[kind]?.(volume, { path, podName }, problems);
}
