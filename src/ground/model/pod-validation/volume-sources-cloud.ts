import { table } from "../../base/index.ts";
import { dnsLabel, inRange } from "./names.ts";
import { checkSecretRef, requireFields, type VolumeCheck } from "./volume-fields.ts";

const cachingModes: readonly string[] = ["None", "ReadOnly", "ReadWrite"];
const diskKinds: readonly string[] = ["Dedicated", "Managed", "Shared"];

/** Partitions count from 1; 0 stands for the whole disk. */
function partitionNumber(partition: number): readonly string[] {
  return partition === 0 ? [] : inRange(partition, 1, 255);
}

/** Disks of clouds and of storage products that Kubernetes knows by name. */
export const cloudVolumeChecks: Readonly<Record<string, VolumeCheck>> = table({
  gcePersistentDisk: ({ gcePersistentDisk }, { path }, problems) => {
    const partition = gcePersistentDisk?.partition ?? 0;
    requireFields(gcePersistentDisk, ["pdName"], `${path}.gcePersistentDisk`, problems);
    problems.invalidEach(`${path}.gcePersistentDisk.partition`, partition, partitionNumber(partition));
  },
  awsElasticBlockStore: ({ awsElasticBlockStore }, { path }, problems) => {
    const partition = awsElasticBlockStore?.partition ?? 0;
    requireFields(awsElasticBlockStore, ["volumeID"], `${path}.awsElasticBlockStore`, problems);
    problems.invalidEach(`${path}.awsElasticBlockStore.partition`, partition, partitionNumber(partition));
  },
  glusterfs: ({ glusterfs }, { path }, problems) =>
    requireFields(glusterfs, ["endpoints", "path"], `${path}.glusterfs`, problems),
  flocker: ({ flocker }, { path }, problems) => {
    const { datasetName = "", datasetUUID = "" } = flocker ?? {};
    const at = `${path}.flocker`;
    if (datasetName === "" && datasetUUID === "") {
      problems.required(at, "one of datasetName and datasetUUID is required");
    }
    if (datasetName !== "" && datasetUUID !== "") {
      problems.invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously");
    }
    if (datasetName.includes("/")) problems.invalid(`${at}.datasetName`, datasetName, "must not contain '/'");
  },
  cinder: ({ cinder }, { path }, problems) => {
    requireFields(cinder, ["volumeID"], `${path}.cinder`, problems);
    checkSecretRef(cinder?.secretRef, `${path}.cinder.secretRef.name`, problems);
  },
  quobyte: ({ quobyte }, { path }, problems) => {
    if (quobyte === undefined) return;
    const wanted = "must be a host:port pair or multiple pairs separated by commas";
    if (quobyte.registry === "") problems.required(`${path}.quobyte.registry`, wanted);
    else if (!quobyte.registry.split(",").every((pair) => /^(?:\[[^\]]*\]|[^:]*):[^:]*$/.test(pair))) {
      problems.invalid(`${path}.quobyte.registry`, quobyte.registry, wanted);
    }
    if ((quobyte.tenant ?? "").length > 64) {
      problems.required(`${path}.quobyte.tenant`, "must be a UUID and may not exceed a length of 64 characters");
    }
    requireFields(quobyte, ["volume"], `${path}.quobyte`, problems);
  },
  azureFile: ({ azureFile }, { path }, problems) =>
    requireFields(azureFile, ["secretName", "shareName"], `${path}.azureFile`, problems),
  vsphereVolume: ({ vsphereVolume }, { path }, problems) =>
    requireFields(vsphereVolume, ["volumePath"], `${path}.vsphereVolume`, problems),
  photonPersistentDisk: ({ photonPersistentDisk }, { path }, problems) =>
    requireFields(photonPersistentDisk, ["pdID"], `${path}.photonPersistentDisk`, problems),
  portworxVolume: ({ portworxVolume }, { path }, problems) =>
    requireFields(portworxVolume, ["volumeID"], `${path}.portworxVolume`, problems),
  azureDisk: ({ azureDisk }, { path }, problems) => {
    if (azureDisk === undefined) return;
    const { cachingMode, kind, diskURI } = azureDisk;
    const at = `${path}.azureDisk`;
    requireFields(azureDisk, ["diskName", "diskURI"], at, problems);
    if (cachingMode !== undefined && !cachingModes.includes(cachingMode)) {
      problems.unsupported(`${at}.cachingMode`, cachingMode, cachingModes);
    }
    if (kind === undefined) return;
    if (!diskKinds.includes(kind)) problems.unsupported(`${at}.kind`, kind, diskKinds);
    const isManaged = kind === "Managed";
    if (!diskURI.startsWith(isManaged ? "/subscriptions/" : "https://")) {
      problems.unsupported(`${at}.diskURI`, diskURI, [
        isManaged
          ? "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
          : "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
      ]);
    }
  },
  storageos: ({ storageos }, { path }, problems) => {
    const { volumeName = "", volumeNamespace = "", secretRef } = storageos ?? {};
    const at = `${path}.storageos`;
    if (volumeName === "") problems.required(`${at}.volumeName`);
    else problems.invalidEach(`${at}.volumeName`, volumeName, dnsLabel(volumeName));
    if (volumeNamespace !== "") {
      problems.invalidEach(`${at}.volumeNamespace`, volumeNamespace, dnsLabel(volumeNamespace));
    }
    checkSecretRef(secretRef, `${at}.secretRef.name`, problems);
  },
  scaleIO: ({ scaleIO }, { path }, problems) =>
    requireFields(scaleIO, ["gateway", "system", "volumeName"], `${path}.scaleIO`, problems),
});
