import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunTool, readMounts, runTool } from "../../src/connections/host/index.ts";
import { type Clock, Ledger, silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import {
  amountsOf,
  defaultPod,
  type IdentifiedPod,
  type PodEvent,
  type PodLedger,
  type PodSpec,
  type PodUid,
  type Volume,
} from "../../src/ground/model/index.ts";
import type {
  ChangeDetection,
  GrowthReports,
  MountLabels,
  NodeVolumePorts,
  PodVolumesPorts,
  RequestToken,
  TrustBundles,
  VolumeKind,
  VolumesInUse,
} from "../../src/pod/volumes/index.ts";
import { nodeKinds, objectsBy, PodVolumes, TokenManager, VolumeFiles } from "../../src/pod/volumes/index.ts";
import { MemoryObjects } from "./memory-objects.ts";

export interface VolumeNodeOptions {
  readonly clock?: Clock;
  readonly strategy?: ChangeDetection;
  readonly requestToken?: RequestToken;
  readonly trustBundles?: TrustBundles;
  readonly claims?: PodVolumesPorts["claims"];
  /** Kinds besides those that every node has, made anew with each start. */
  readonly lateKinds?: () => readonly VolumeKind[];
  readonly memoryBytes?: bigint;
  readonly run?: RunTool;
  readonly withImages?: boolean;
  /** Who attaches volumes; made anew with each start. */
  readonly inUse?: () => VolumesInUse;
  readonly growth?: GrowthReports;
  /** How long a program that is a driver may take. */
  readonly longestDriverCallMs?: number;
  /** Undefined: SELinux is off. */
  readonly labels?: MountLabels;
  /** Where `/sys` and `/dev` are. */
  readonly deviceRoot?: string;
  /** How long a file system may be silent. */
  readonly silenceMs?: number;
}

/** The volume engine with a directory of its own, and what it said and asked for; the agent around it is missing. */
export class VolumeNode implements AsyncDisposable {
  readonly root: string;
  readonly objects = new MemoryObjects();
  readonly events: (PodEvent & { readonly pod: string })[] = [];
  readonly ready: PodUid[] = [];
  readonly contentDelaysMs: number[] = [];
  readonly clock: Clock;
  readonly ledger: PodLedger;
  readonly #options: VolumeNodeOptions;
  #scope = new TaskScope();
  #volumes: PodVolumes;

  private constructor(root: string, options: VolumeNodeOptions) {
    this.root = root;
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    this.ledger = new Ledger(this.clock);
    this.#volumes = this.#start();
  }

  static async create(options: VolumeNodeOptions = {}): Promise<VolumeNode> {
    const root = await mkdtemp(join(tmpdir(), "nodelet-volumes-"));
    return new VolumeNode(root, options);
  }

  /** In a directory that outlives it: nothing is cleaned up by leaving it but its loops. */
  static at(root: string, options: VolumeNodeOptions = {}): VolumeNode {
    return new VolumeNode(root, options);
  }

  get podsDir(): string {
    return join(this.root, "pods");
  }

  get volumes(): PodVolumes {
    return this.#volumes;
  }

  get scope(): TaskScope {
    return this.#scope;
  }

  /** As if the agent ended and started again: nothing is remembered but what is on disk. */
  async restart(): Promise<void> {
    await this.#scope.stop();
    this.#scope = new TaskScope();
    this.#volumes = this.#start();
    await this.#volumes.restore();
  }

  volumePath(uid: string, plugin: string, name: string): string {
    return join(this.podsDir, uid, "volumes", plugin.replaceAll("/", "~"), name);
  }

  /** Mount points below this node's directory. */
  async mounts(): Promise<readonly string[]> {
    return (await readMounts())
      .map(({ mountPoint }) => mountPoint)
      .filter((point) => point.startsWith(`${this.root}/`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
    const { mountWorkHere, unmountAllBelow } = await import("../../src/pod/volumes/mounting/unmount.ts");
    await unmountAllBelow(this.root, mountWorkHere);
    await rm(this.root, { recursive: true, force: true });
  }

  #start(): PodVolumes {
    const {
      strategy = "Watch",
      requestToken,
      trustBundles,
      claims,
      lateKinds,
      memoryBytes = 1n << 30n,
    } = this.#options;
    const { clock, ledger } = this;
    const random = Math.random;
    const log = silentLogger;
    const objects = objectsBy(strategy, this.objects, { clock, syncFrequencyMs: 60_000 });
    const tokens = new TokenManager({ request: requestToken, clock, log, random });
    const recordEvent: PodVolumesPorts["recordEvent"] = ({ metadata }, event) =>
      this.events.push({ ...event, pod: metadata.name });
    const files = new VolumeFiles({ clock, rootDir: this.root, silenceMs: this.#options.silenceMs });
    const ports: NodeVolumePorts = {
      files,
      clock,
      log,
      random,
      recordEvent,
      nodeAllocatable: () => amountsOf({ cpu: "4", memory: String(memoryBytes) }),
      allocatableMemoryBytes: () => memoryBytes,
      objects,
      tokens,
      trustBundles,
      run: this.#options.run ?? runTool,
      podsDir: this.podsDir,
      pluginsDir: join(this.root, "plugins"),
      withImages: this.#options.withImages ?? false,
      nodeName: "node-1",
      volumePluginDir: join(this.root, "flex"),
      inUse: this.#options.inUse?.(),
      secret: (namespace, name, signal) => this.objects.get({ kind: "secret", namespace, name }, "latest", signal),
      growth: this.#options.growth,
      syncFrequencyMs: 60_000,
      onDrivers: () => this.#volumes.retryNow(),
      longestDriverCallMs: this.#options.longestDriverCallMs,
      deviceRoot: this.#options.deviceRoot,
      labels: this.#options.labels,
    };
    const kinds = [...nodeKinds(ports), ...(lateKinds?.() ?? [])];
    for (const kind of kinds) {
      const run = kind.run?.bind(kind);
      if (run !== undefined) this.#scope.spawn(kind.plugin, run);
    }
    return new PodVolumes(this.#scope, {
      files,
      clock,
      log,
      ledger,
      recordEvent,
      random,
      podsDir: this.podsDir,
      kinds,
      objects,
      trustBundles,
      claims,
      onReady: (uid) => this.ready.push(uid),
      onContent: ({ delayMs }) => this.contentDelaysMs.push(delayMs),
    });
  }
}

let pods = 0;

/** A pod whose only container mounts every volume at `/<name>`; defaults are filled in as sources do. */
export function podWithVolumes(
  volumes: readonly Volume[],
  spec: Partial<PodSpec> = {},
  metadata: Partial<IdentifiedPod["metadata"]> = {},
): IdentifiedPod {
  const number = ++pods;
  const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  const pod = defaultPod({
    metadata: { name: `pod-${number}`, namespace: "default", uid: `uid-${number}`, ...metadata },
    spec: { containers: [{ name: "main", image: "busybox:1", volumeMounts: mounts }], volumes, ...spec },
  });
  return pod as IdentifiedPod;
}
