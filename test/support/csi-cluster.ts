import type {
  CSIDriver,
  CSIDriverSpec,
  PersistentVolumeClaim,
  PodEvent,
  Secret,
  VolumeAttachment,
} from "../../src/ground/model/index.ts";
import { attachmentName } from "../../src/pod/volumes/csi/csi-volume.ts";
import type { CsiCluster, ResizeReport } from "../../src/pod/volumes/index.ts";

export const testNodeName = "node-1";

/** The storage side of a cluster: everything is attached at once unless told otherwise. */
export class MemoryCsiCluster implements CsiCluster {
  readonly drivers = new Map<string, CSIDriver>();
  readonly attachments = new Map<string, VolumeAttachment>();
  readonly secrets = new Map<string, Secret>();
  readonly resizes: ResizeReport[] = [];
  readonly claimEvents: string[] = [];
  attached: "all" | ReadonlySet<string> = "all";

  driver(name: string, spec: CSIDriverSpec): void {
    this.drivers.set(name, { metadata: { name }, spec });
  }

  attach(driver: string, handle: string, metadata: Record<string, string> = {}): void {
    const name = attachmentName({ driver, handle }, testNodeName);
    this.attachments.set(name, {
      metadata: { name },
      spec: { attacher: driver, nodeName: testNodeName, source: {} },
      status: { attached: true, attachmentMetadata: metadata },
    });
  }

  async csiDriver(name: string): Promise<CSIDriver | undefined> {
    return this.drivers.get(name);
  }

  async attachment(name: string): Promise<VolumeAttachment | undefined> {
    return this.attachments.get(name);
  }

  async attachedAt(uniqueName: string): Promise<{ readonly devicePath: string } | undefined> {
    return this.attached === "all" || this.attached.has(uniqueName) ? { devicePath: "" } : undefined;
  }

  async secret(namespace: string, name: string): Promise<Secret | undefined> {
    return this.secrets.get(`${namespace}/${name}`);
  }

  recordClaimEvent({ metadata }: PersistentVolumeClaim, { reason, message }: PodEvent): void {
    this.claimEvents.push(`${metadata?.name} ${reason}: ${message}`);
  }

  async reportResize(_claim: object, report: ResizeReport): Promise<void> {
    this.resizes.push(report);
  }
}
