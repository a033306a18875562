import type {
  PersistentVolumeClaimSpec,
  PersistentVolumeClaimTemplate,
  TypedLocalObjectReference,
  TypedObjectReference,
} from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { tryParseQuantity } from "../quantity.ts";
import { canonicalQuantity } from "../quantity-format.ts";
import { checkAnnotations, checkLabelSelector, checkLabels } from "./labels.ts";
import { dnsLabel, dnsSubdomain } from "./names.ts";

const accessModes: readonly string[] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const volumeModes: readonly string[] = ["Block", "Filesystem"];

/** The claim that is made for an ephemeral volume. */
export function checkClaimTemplate(
  { metadata = {}, spec }: PersistentVolumeClaimTemplate,
  path: string,
  problems: ProblemList,
): void {
  checkAnnotations(metadata.annotations, `${path}.metadata.annotations`, problems);
  checkLabels(metadata.labels, `${path}.metadata.labels`, problems);
  for (const [name, value] of Object.entries(metadata)) {
    if (name === "annotations" || name === "labels" || value === undefined || value === "") continue;
    problems.forbidden(`${path}.metadata.${name}`, "cannot be set");
  }
  checkClaimSpec(spec, `${path}.spec`, problems);
}

function checkClaimSpec(spec: PersistentVolumeClaimSpec, path: string, problems: ProblemList): void {
  const { accessModes: modes = [], storageClassName, volumeMode, dataSource, dataSourceRef } = spec;
  if (modes.length === 0) problems.required(`${path}.accessModes`, "at least 1 access mode is required");
  for (const mode of modes) {
    if (!accessModes.includes(mode)) problems.unsupported(`${path}.accessModes`, mode, accessModes);
  }
  if (modes.includes("ReadWriteOncePod") && new Set(modes).size > 1) {
    problems.forbidden(`${path}.accessModes`, "may not use ReadWriteOncePod with other access modes");
  }
  checkLabelSelector(spec.selector, `${path}.selector`, problems);
  checkStorage(spec.resources?.requests?.["storage"], path, problems);
  if (storageClassName) {
    problems.invalidEach(`${path}.storageClassName`, storageClassName, dnsSubdomain(storageClassName));
  }
  if (volumeMode !== undefined && !volumeModes.includes(volumeMode)) {
    problems.unsupported(`${path}.volumeMode`, volumeMode, volumeModes);
  }
  if (dataSource !== undefined) checkDataSource(dataSource, `${path}.dataSource`, problems);
  if (dataSourceRef !== undefined) {
    checkDataSource(dataSourceRef, `${path}.dataSourceRef`, problems);
    const { namespace } = dataSourceRef;
    if (namespace) problems.invalidEach(`${path}.dataSourceRef.namespace`, namespace, dnsLabel(namespace));
  }
}

function checkStorage(storage: string | undefined, path: string, problems: ProblemList): void {
  if (storage === undefined) problems.required(`${path}.resources[storage]`);
  else if ((tryParseQuantity(storage) ?? 0n) <= 0n) {
    problems.invalid(`${path}.resources[storage]`, canonicalQuantity(storage), "must be greater than zero");
  }
}

function checkDataSource(
  source: TypedLocalObjectReference | TypedObjectReference,
  path: string,
  problems: ProblemList,
): void {
  const { name, kind, apiGroup } = source;
  if (name === "") problems.required(`${path}.name`);
  if (kind === "") problems.required(`${path}.kind`);
  if (!apiGroup) {
    if (kind !== "PersistentVolumeClaim") {
      problems.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
  } else problems.invalidEach(`${path}.apiGroup`, apiGroup, dnsSubdomain(apiGroup));
}
