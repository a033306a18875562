import { table } from "../../base/index.ts";
import { pullPolicies } from "../image-reference.ts";
import type { FCVolumeSource, ISCSIVolumeSource } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { tryParseQuantity } from "../quantity.ts";
import { checkClaimTemplate } from "./claim-template.ts";
import { dnsSubdomain, inRange } from "./names.ts";
import { checkNoBacksteps, checkNonReservedPath } from "./paths.ts";
import { checkProjected } from "./projected.ts";
import {
  checkDownwardFile,
  checkItems,
  checkMode,
  checkSecretRef,
  requireFields,
  type VolumeCheck,
} from "./volume-fields.ts";
import { cloudVolumeChecks } from "./volume-sources-cloud.ts";

/** The rules of each kind of volume. When several are given, the first of this table counts as the one meant. */
export const volumeSourceChecks: Readonly<Record<string, VolumeCheck>> = table({
  emptyDir: ({ emptyDir }, { path }, problems) => {
    const limit = emptyDir?.sizeLimit;
    if (limit !== undefined && (tryParseQuantity(limit) ?? -1n) < 0n) {
      problems.forbidden(`${path}.emptyDir.sizeLimit`, "SizeLimit field must be a valid resource quantity");
    }
  },
  hostPath: ({ hostPath }, { path }, problems) => {
    if (hostPath === undefined) return;
    const at = `${path}.hostPath`;
    if (hostPath.path === "") problems.required(`${at}.path`);
    else checkNoBacksteps(hostPath.path, `${at}.path`, problems);
    const { type } = hostPath;
    if (type !== undefined && !hostPathTypes.includes(type)) problems.unsupported(`${at}.type`, type, hostPathTypes);
  },
  gitRepo: ({ gitRepo }, { path }, problems) => {
    requireFields(gitRepo, ["repository"], `${path}.gitRepo`, problems);
    checkNonReservedPath(gitRepo?.directory ?? "", `${path}.gitRepo.directory`, problems);
  },
  secret: ({ secret }, { path }, problems) => {
    requireFields(secret, ["secretName"], `${path}.secret`, problems);
    checkMode(secret?.defaultMode, `${path}.secret.defaultMode`, problems);
    checkItems(secret?.items ?? [], `${path}.secret.items`, problems);
  },
  nfs: ({ nfs }, { path }, problems) => {
    requireFields(nfs, ["server", "path"], `${path}.nfs`, problems);
    if (nfs !== undefined && nfs.path !== "" && !nfs.path.startsWith("/")) {
      problems.invalid(`${path}.nfs.path`, nfs.path, "must be an absolute path");
    }
  },
  iscsi: ({ name, iscsi }, { path }, problems) => {
    if (iscsi !== undefined) checkIscsi(iscsi, name, path, problems);
  },
  persistentVolumeClaim: ({ persistentVolumeClaim }, { path }, problems) =>
    requireFields(persistentVolumeClaim, ["claimName"], `${path}.persistentVolumeClaim`, problems),
  rbd: ({ rbd }, { path }, problems) => requireFields(rbd, ["monitors", "image"], `${path}.rbd`, problems),
  cephfs: ({ cephfs }, { path }, problems) => requireFields(cephfs, ["monitors"], `${path}.cephfs`, problems),
  downwardAPI: ({ downwardAPI }, { path }, problems) => {
    checkMode(downwardAPI?.defaultMode, `${path}.downwardAPI.defaultMode`, problems);
    for (const [index, item] of (downwardAPI?.items ?? []).entries()) {
      checkDownwardFile(item, `${path}.downwardAPI.items[${index}]`, problems);
    }
  },
  fc: ({ fc }, { path }, problems) => {
    if (fc !== undefined) checkFibreChannel(fc, `${path}.fc`, problems);
  },
  flexVolume: ({ flexVolume }, { path }, problems) => {
    requireFields(flexVolume, ["driver"], `${path}.flexVolume`, problems);
    for (const key of Object.keys(flexVolume?.options ?? {})) {
      const domain = key.split("/", 1)[0]?.toLowerCase() ?? "";
      if (!/(?:^|\.)(?:kubernetes|k8s)\.io$/.test(domain)) continue;
      problems.invalid(`${path}.flexVolume.options[${key}]`, key, "kubernetes.io and k8s.io namespaces are reserved");
    }
  },
  configMap: ({ configMap }, { path }, problems) => {
    requireFields(configMap, ["name"], `${path}.configMap`, problems);
    checkMode(configMap?.defaultMode, `${path}.configMap.defaultMode`, problems);
    checkItems(configMap?.items ?? [], `${path}.configMap.items`, problems);
  },
  projected: ({ projected }, { path }, problems) => {
    if (projected !== undefined) checkProjected(projected, `${path}.projected`, problems);
  },
  csi: ({ csi }, { path }, problems) => {
    if (csi === undefined) return;
    const at = `${path}.csi.driver`;
    if (csi.driver === "") problems.required(at);
    else problems.invalidEach(at, csi.driver, dnsSubdomain(csi.driver.toLowerCase()));
    if (csi.driver.length > 63) problems.tooLong(at, 63);
    const { nodePublishSecretRef: ref } = csi;
    checkSecretRef(ref, `${path}.csi.nodePublishSecretRef.name`, problems);
    if (ref?.name) problems.invalidEach(`${path}.csi.nodePublishSecretRef.name`, ref.name, dnsSubdomain(ref.name));
  },
  ephemeral: ({ name, ephemeral }, { path, podName }, problems) => {
    const template = ephemeral?.volumeClaimTemplate;
    if (template === undefined) problems.required(`${path}.ephemeral.volumeClaimTemplate`);
    else checkClaimTemplate(template, `${path}.ephemeral.volumeClaimTemplate`, problems);
    for (const detail of dnsSubdomain(`${podName}-${name}`)) {
      problems.invalid(`${path}.name`, name, `PVC name "${podName}-${name}": ${detail}`);
    }
  },
  image: ({ image }, { path }, problems) => {
    requireFields(image, ["reference"], `${path}.image`, problems);
    const { pullPolicy } = image ?? {};
    if (pullPolicy && !pullPolicies.some((policy) => policy === pullPolicy)) {
      problems.unsupported(`${path}.image.pullPolicy`, pullPolicy, pullPolicies);
    }
  },
  ...cloudVolumeChecks,
});

const hostPathTypes: readonly string[] = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

const iqnPattern =
  /^iqn\.\d{4}-\d{2}\.([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:.+)?$/;
const euiPattern = /^eui\.[0-9A-Fa-f]{16}$/;
const naaPattern = /^naa\.(?:[0-9A-Fa-f]{16}|[0-9A-Fa-f]{32})$/;
const iscsiPatterns = table({ iqn: iqnPattern, eui: euiPattern, naa: naaPattern });

function checkIscsi(iscsi: ISCSIVolumeSource, volumeName: string, volumePath: string, problems: ProblemList): void {
  const path = `${volumePath}.iscsi`;
  const { iqn, lun, initiatorName, secretRef, chapAuthDiscovery, chapAuthSession } = iscsi;
  requireFields(iscsi, ["targetPortal", "iqn"], path, problems);
  if (iqn !== "") checkIscsiName(iqn, `${path}.iqn`, problems);
  problems.invalidEach(`${path}.lun`, lun, inRange(lun, 0, 255));
  if ((chapAuthDiscovery === true || chapAuthSession === true) && secretRef === undefined) {
    problems.required(`${path}.secretRef`);
  }
  if (initiatorName === undefined) return;
  checkIscsiName(initiatorName, `${path}.initiatorName`, problems);
  // The name of the network interface that is made for the initiator has a limit of its own.
  if (`${iscsi.targetPortal}:${volumeName}`.length > 64) {
    problems.invalid(
      `${volumePath}.name`,
      volumeName,
      "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
    );
  }
}

function checkIscsiName(name: string, path: string, problems: ProblemList): void {
  const pattern = iscsiPatterns[name.slice(0, 3)];
  if (pattern === undefined) problems.invalid(path, name, "must be valid format starting with iqn, eui, or naa");
  else if (!pattern.test(name)) problems.invalid(path, name, "must be valid format");
}

function checkFibreChannel(
  { targetWWNs = [], wwids = [], lun }: FCVolumeSource,
  path: string,
  problems: ProblemList,
): void {
  if (targetWWNs.length === 0 && wwids.length === 0) {
    problems.required(`${path}.targetWWNs`, "must specify either targetWWNs or wwids, but not both");
  }
  if (targetWWNs.length > 0 && wwids.length > 0) {
    problems.invalid(`${path}.targetWWNs`, targetWWNs, "targetWWNs and wwids can not be specified simultaneously");
  }
  if (targetWWNs.length === 0) return;
  if (lun === undefined) problems.required(`${path}.lun`, "lun is required if targetWWNs is specified");
  else problems.invalidEach(`${path}.lun`, lun, inRange(lun, 0, 255));
}
