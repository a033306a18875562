import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { runTool } from "../../src/connections/host/index.ts";
import { CsiDrivers, PluginRegistration } from "../../src/connections/plugins/index.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { type IdentifiedPod, type PersistentVolumeSpec, uidOf, type Volume } from "../../src/ground/model/index.ts";
import { CsiVolumes, type MountLabels, TokenManager, VolumeError, VolumeFiles } from "../../src/pod/volumes/index.ts";
import { MemoryCsiCluster, testNodeName } from "./csi-cluster.ts";
import { type CsiDriverOptions, TestCsiDriver } from "./csi-driver.ts";
import { MemoryClaims } from "./memory-claims.ts";
import { until } from "./until.ts";
import { VolumeNode } from "./volume-node.ts";

/** The name of the driver beside the node. */
export const driver = "csi.example.com";

/** Volumes of that driver, by a claim and by the pod itself. */
export const claimed = (claimName: string, readOnly = false): Volume => ({
  name: "v",
  persistentVolumeClaim: { claimName, readOnly },
});
export const inline = (more: object = {}): Volume => ({ name: "v", csi: { driver, ...more } });

/** Where the driver has to show the volume. */
export function targetOf({ node }: CsiNode, pod: IdentifiedPod, name: string): string {
  return join(node.volumePath(uidOf(pod), "kubernetes.io/csi", name), "mount");
}

/** What a pod is told whose volumes can't be had now. */
export async function refused(csi: CsiNode, pod: IdentifiedPod): Promise<string> {
  const signal = new AbortController().signal;
  const error: unknown = await csi.node.volumes.mount(pod, signal).catch((caught: unknown) => caught);
  assert.ok(error instanceof VolumeError, String(error));
  return error.message;
}

/** A node with the volume engine, plugin registration and a storage driver beside it. */
export class CsiNode implements AsyncDisposable {
  readonly node: VolumeNode;
  readonly claims: MemoryClaims;
  readonly cluster = new MemoryCsiCluster();
  readonly driver: TestCsiDriver;
  readonly drivers: CsiDrivers;
  readonly kinds: CsiVolumes[] = [];
  readonly tokens: string[] = [];
  /** Where SELinux is on; from the next restart on. */
  labels: MountLabels | undefined;
  /** What was in use after each change. */
  readonly inUse: (readonly string[])[] = [];

  private constructor(node: VolumeNode, claims: MemoryClaims, options: CsiDriverOptions, self: { csi?: CsiNode }) {
    this.node = node;
    this.claims = claims;
    self.csi = this;
    this.driver = new TestCsiDriver(join(node.root, "d"), join(node.root, "reg"), options);
    this.drivers = new CsiDrivers({
      clock: systemClock,
      log: silentLogger,
      records: undefined,
      onRegistered: () => node.volumes.retryNow(),
    });
  }

  static async create(options: CsiDriverOptions = {}): Promise<CsiNode> {
    const self: { csi?: CsiNode } = {};
    const claims = new MemoryClaims();
    const node = await VolumeNode.create({
      claims,
      lateKinds: () => (self.csi === undefined ? [] : [self.csi.#newKind()]),
    });
    const csi = new CsiNode(node, claims, options, self);
    await node.restart();
    await csi.driver.start();
    csi.#register();
    await until("the driver is registered", () => csi.drivers.names().length > 0);
    return csi;
  }

  /** The present instance of the CSI kind. */
  get kind(): CsiVolumes {
    const kind = this.kinds.at(-1);
    if (kind === undefined) throw new Error("no kind was made");
    return kind;
  }

  /** The agent ends and starts again; the driver runs on. */
  async restart(): Promise<void> {
    await this.node.restart();
    this.#register();
  }

  /** A bound claim on a volume of the driver, attached to this node. */
  bind(name: string, spec: Partial<PersistentVolumeSpec> = {}, csi: object = {}): void {
    const { name: driver } = this.driver;
    const handle = `vol-${name}`;
    this.claims.bind(name, { csi: { driver, volumeHandle: handle, fsType: "ext4", ...csi }, ...spec });
    this.cluster.attach(driver, handle, { device: "/dev/sdx" });
  }

  staging(handle: string): string {
    return join(this.node.root, "plugins/kubernetes.io/csi", this.driver.name, sha256(handle));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.driver.stop();
    await this.node[Symbol.asyncDispose]();
  }

  #register(): void {
    const registration = new PluginRegistration({
      directory: join(this.node.root, "reg"),
      handlers: new Map([["CSIPlugin", this.drivers]]),
      clock: systemClock,
      log: silentLogger,
    });
    this.node.scope.spawn("plugins", (signal) => registration.run(signal));
  }

  #newKind(): CsiVolumes {
    const kind: CsiVolumes = new CsiVolumes({
      clock: systemClock,
      log: silentLogger,
      random: Math.random,
      recordEvent: ({ metadata }, event) => this.node.events.push({ ...event, pod: metadata.name }),
      run: runTool,
      files: new VolumeFiles({ clock: systemClock, rootDir: this.node.root }),
      drivers: this.drivers,
      cluster: this.cluster,
      labels: this.labels,
      tokens: new TokenManager({
        clock: systemClock,
        log: silentLogger,
        random: Math.random,
        request: async (_namespace, account, spec) => {
          this.tokens.push(account);
          const expirationTimestamp = new Date(systemClock.now() + 3_600_000).toISOString();
          return { spec, status: { token: `t${this.tokens.length}`, expirationTimestamp } };
        },
      }),
      onInUse: () => this.inUse.push(kind.volumesInUse()),
      nodeName: testNodeName,
      pluginsDir: join(this.node.root, "plugins"),
      syncFrequencyMs: 50,
    });
    this.kinds.push(kind);
    return kind;
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
