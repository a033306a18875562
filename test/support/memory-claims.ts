import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec } from "../../src/ground/model/index.ts";
import type { Claims } from "../../src/pod/volumes/index.ts";

/** Claims and persistent volumes as an API server has them. */
export class MemoryClaims implements Claims {
  readonly claims = new Map<string, PersistentVolumeClaim>();
  readonly persistentVolumes = new Map<string, PersistentVolume>();
  labels: Readonly<Record<string, string>> = { zone: "a" };
  outage: Error | undefined;
  /** How often a claim was looked at, for those who wait for the next look. */
  looks = 0;

  /** A claim `name` bound to a volume `pv-name` of that source. */
  bind(name: string, source: Partial<PersistentVolumeSpec>, metadata: PersistentVolume["metadata"] = {}): void {
    const uid = `claim-${name}`;
    this.claims.set(name, {
      metadata: { name, namespace: "default", uid },
      spec: { volumeName: `pv-${name}` },
      status: { phase: "Bound" },
    });
    this.persistentVolumes.set(`pv-${name}`, {
      metadata: { name: `pv-${name}`, ...metadata },
      spec: { accessModes: ["ReadWriteOnce"], claimRef: { uid, name }, ...source },
    });
  }

  async claim(_namespace: string, name: string): Promise<PersistentVolumeClaim | undefined> {
    this.looks++;
    if (this.outage !== undefined) throw this.outage;
    return this.claims.get(name);
  }

  async persistentVolume(name: string): Promise<PersistentVolume | undefined> {
    if (this.outage !== undefined) throw this.outage;
    return this.persistentVolumes.get(name);
  }

  node(): ReturnType<Claims["node"]> {
    return { name: "node-1", labels: this.labels };
  }
}
