import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPodEngine, type PodEngine } from "../../src/agent/build-pod-engine.ts";
import { buildPodSight, type PodSight } from "../../src/agent/build-pod-sight.ts";
import type { PodEngineParts } from "../../src/agent/pod-engine-parts.ts";
import { Wakes } from "../../src/agent/wakes.ts";
import { FakeRuntime, type FakeRuntimeOptions } from "../../src/beside/hollow/index.ts";
import { CriError, RuntimeEvents } from "../../src/connections/cri/index.ts";
import { Ledger, messageOf, silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import type {
  ContainerStatus,
  IdentifiedPod,
  PodLedger,
  PodSource,
  PodSpec,
  PodStatus,
  PodStep,
  PodUid,
  Provisional,
} from "../../src/ground/model/index.ts";
import { AgentMetrics } from "../../src/node/metrics/index.ts";
import { MetricRegistries } from "../../src/node/server/index.ts";
import { Admission, type AdmissionHandler } from "../../src/pod/registry/index.ts";
import { StartError } from "../../src/pod/runtime/index.ts";
import { noDeviceGrants } from "../../src/pod/runtime/mapping/context.ts";
import { PodMux } from "../../src/pod/sources/index.ts";
import { PodVolumes, VolumeFiles, type VolumeKind } from "../../src/pod/volumes/index.ts";
import { PodChurn, StartSlots } from "../../src/pod/workers/index.ts";
import { exampleContext } from "./example-context.ts";
import { FakeClock, settleFiles } from "./fake-clock.ts";

export interface TestEngineOptions {
  readonly runtime?: Partial<FakeRuntimeOptions>;
  readonly source?: PodSource;
  /** Another source, which never says anything. */
  readonly awaited?: PodSource;
  readonly handlers?: readonly AdmissionHandler[];
  /** Resource claims; made anew for each life. */
  readonly claims?: (
    parts: Pick<PodEngineParts, "scope" | "clock" | "ledger" | "wakes"> & { readonly rootDir: string },
  ) => PodEngineParts["claims"];
  /** What containers get of devices. */
  readonly devicesFor?: PodEngineParts["devicesFor"];
  /** Stands between the runtime's hints and the engine. */
  readonly runtimeEvents?: (runtimeEvents: PodEngineParts["runtimeEvents"]) => PodEngineParts["runtimeEvents"];
  /** Stands between the engine and the runtime's answers. */
  readonly answers?: (runtime: FakeRuntime["runtime"]) => FakeRuntime["runtime"];
  readonly startSlots?: number;
  /** In place of images that are simply there. */
  readonly images?: (
    runtime: FakeRuntime,
    parts: Pick<PodEngineParts, "clock" | "ledger" | "metrics">,
  ) => PodEngineParts["images"];
  readonly volumeKinds?: readonly VolumeKind[];
  readonly hostIPs?: PodEngineParts["hostIPs"];
  /** As containers are told of them. */
  readonly nodeIps?: () => readonly string[];
  readonly readHostDns?: PodEngineParts["readHostDns"];
  readonly resizeSettings?: Partial<PodEngineParts["resizeSettings"]>;
}

/** A node that can resize whatever the API asks for. */
const anywhere = { exclusiveCpus: false, cpus: "", memoryNodes: "" };

export const noResizeLimits: PodEngineParts["resizeSettings"] = {
  isEnabled: true,
  ofPods: true,
  ofInitContainers: true,
  pinsCpus: false,
  pinsMemory: false,
  mayUseSwap: () => false,
  allocatable: () => new Map(),
};

/** The pod engine as the agent wires it, on virtual time, over the simulated runtime. */
export class TestEngine implements AsyncDisposable {
  readonly clock = new FakeClock(undefined, settleFiles);
  readonly runtime: FakeRuntime;
  readonly events: string[] = [];
  /** What became of the cgroups of pods by resizes, in order. */
  readonly cgroupChanges: string[] = [];
  /** What all containers of a pod use, in bytes. */
  podMemoryUsage = 0n;
  readonly podCgroups: PodEngineParts["cgroups"]["pods"] = {
    raise: async ({ metadata }, all) => void this.cgroupChanges.push(`raise ${all.join(" and ")} of ${metadata.name}`),
    lower: async ({ metadata }, all) => void this.cgroupChanges.push(`lower ${all.join(" and ")} of ${metadata.name}`),
    follow: async () => {},
    memoryLimit: () => undefined,
    memoryUsage: async () => this.podMemoryUsage,
    resources: async () => undefined,
  };
  readonly rootDir: string;
  readonly #options: TestEngineOptions;
  readonly #wanted = new Map<string, IdentifiedPod>();
  #life: Life;

  private constructor(rootDir: string, options: TestEngineOptions) {
    this.rootDir = rootDir;
    this.#options = options;
    this.runtime = new FakeRuntime({ clock: this.clock, events: "offered", ...options.runtime });
    this.runtime.imageStore.preload("busybox:1");
    this.#life = this.#begin();
  }

  static async start(options: TestEngineOptions = {}): Promise<TestEngine> {
    const engine = new TestEngine(await mkdtemp(join(tmpdir(), "nodelet-engine-")), options);
    await engine.#deliver();
    return engine;
  }

  get engine(): PodEngine & PodSight & Pick<Life, "ledger" | "reconsider"> {
    const { engine, sight, ledger, reconsider } = this.#life;
    return { ...sight, ...engine, ledger, reconsider };
  }

  /** What this life has counted. */
  get figures(): MetricRegistries {
    return this.#life.figures;
  }

  /** Adds pods, or replaces those of the same uid, and lets the engine get to where only time helps. */
  async want(...pods: readonly IdentifiedPod[]): Promise<void> {
    for (const pod of pods) this.#wanted.set(pod.metadata.uid, pod);
    await this.#deliver();
  }

  async drop(...uids: readonly string[]): Promise<void> {
    for (const uid of uids) this.#wanted.delete(uid);
    await this.#deliver();
  }

  /** As `drop`, but nobody tells the engine: for manifests that go while the agent is away. */
  forget(...uids: readonly string[]): void {
    for (const uid of uids) this.#wanted.delete(uid);
  }

  /**
   * Ends this life of the engine and begins the next, with what was left on disk and in the runtime, and with pods that
   * came meanwhile.
   */
  async restart(...added: readonly IdentifiedPod[]): Promise<void> {
    await this.restartUnheard();
    for (const pod of added) this.#wanted.set(pod.metadata.uid, pod);
    await this.#deliver();
  }

  /** The next life begins, and no source says anything yet. */
  async restartUnheard(): Promise<void> {
    await this.stop();
    this.#life = this.#begin();
    await this.advance(0);
  }

  /** As `want`, but nobody tells the engine yet. */
  intend(pod: IdentifiedPod): void {
    this.#wanted.set(pod.metadata.uid, pod);
  }

  /** The source hands in the pods it wanted last, without standing by them; `hold` is what each has to wait for. */
  async assume(hold: Provisional["hold"]): Promise<void> {
    const { source = "file" } = this.#options;
    await this.#life.mux.set(source, [...this.#wanted.values()], this.#life.scope.signal, { hold });
    await this.advance(0);
  }

  /** Calls that are under way are given time to end, so time goes on meanwhile. */
  async stop(): Promise<void> {
    let isStopped = false;
    const stopping = this.#life.scope.stop().then(() => {
      isStopped = true;
    });
    while (!isStopped) await this.clock.advance(100);
    await stopping;
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await settleFiles();
    const { reason } = this.#life.scope.signal;
    if (reason instanceof Error && reason.cause !== undefined) throw reason;
  }

  /** Moves time on until the condition holds; how long that took. */
  async until(what: string, condition: () => boolean, limitMs = 600_000, stepMs = 100): Promise<number> {
    const before = this.clock.now();
    await this.advance(0);
    while (!condition()) {
      if (this.clock.now() - before > limitMs) throw new Error(`waited ${limitMs} virtual ms in vain for: ${what}`);
      await this.advance(stepMs);
    }
    return this.clock.now() - before;
  }

  status(uid: string): PodStatus {
    const status = this.#life.sight.statuses.get(uid as PodUid);
    if (status === undefined) throw new Error(`pod ${uid} has no status`);
    return status;
  }

  container(uid: string, name: string): ContainerStatus {
    const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = this.status(uid);
    const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
    const found = all.find((container) => container.name === name);
    if (found === undefined) throw new Error(`the status of pod ${uid} has no container ${name}`);
    return found;
  }

  phase(uid: string): string | undefined {
    return this.#life.sight.statuses.get(uid as PodUid)?.phase;
  }

  /** Names of the containers that run, as "pod/container", in order. */
  running(): readonly string[] {
    return this.runtime
      .containers()
      .filter(({ life }) => life.step === "running")
      .map(({ sandbox, config }) => `${sandbox.config.metadata?.name}/${config.metadata?.name}`)
      .sort();
  }

  /** How many calls have reached the runtime. */
  calls(): number {
    return [...this.runtime.callCounts().values()].reduce((sum, count) => sum + count, 0);
  }

  /** What the agent does every few minutes: removes directories of pods that nobody knows. */
  async cleanOrphanedDirectories(): Promise<void> {
    const { sight, volumes, scope } = this.#life;
    const known = await sight.podsInUse(scope.signal);
    if (known !== undefined) await volumes.cleanOrphanedDirectories(known, scope.signal);
  }

  async #deliver(): Promise<void> {
    const { source = "file" } = this.#options;
    await this.#life.mux.set(source, [...this.#wanted.values()], this.#life.scope.signal);
    await this.advance(0);
  }

  #begin(): Life {
    const { clock, rootDir } = this;
    const { images } = this.runtime;
    const runtime = this.#options.answers?.(this.runtime.runtime) ?? this.runtime.runtime;
    const { source = "file", handlers = [], runtimeEvents = (unchanged) => unchanged, startSlots = 4 } = this.#options;
    const scope = new TaskScope();
    const figures = new MetricRegistries();
    const metrics = new AgentMetrics(figures, clock);
    const recordEvent: PodEngineParts["recordPodEvent"] = ({ metadata }, { reason, message }) => {
      this.events.push(`${metadata.name} ${reason}: ${message}`);
    };
    const sources = this.#options.awaited === undefined ? [source] : [source, this.#options.awaited];
    const mux = new PodMux({ mode: "incremental", sources }, { clock, recordEvent });
    const ledger = new Ledger<PodUid, PodStep>(clock, undefined, metrics.pods.onStep);
    const wakes = new Wakes();
    const hinted = runtimeEvents(new RuntimeEvents({ runtime, clock, log: silentLogger }));
    const wasOomKilled = (): boolean => false;
    const seen = {
      clock,
      log: silentLogger,
      runtime,
      runtimeEvents: hinted,
      mux,
      metrics,
      wakes,
      rootDir,
      wasOomKilled,
    };
    const sight = buildPodSight(seen);
    const volumes = new PodVolumes(scope, {
      clock,
      log: silentLogger,
      ledger,
      recordEvent,
      random: () => 0.5,
      podsDir: join(rootDir, "pods"),
      files: new VolumeFiles({ clock, rootDir }),
      kinds: this.#options.volumeKinds ?? [],
      objects: undefined,
      trustBundles: undefined,
      claims: undefined,
      onReady: wakes.pod.tell,
    });
    const engine = buildPodEngine({
      claims: this.#options.claims?.({ scope, clock, ledger, wakes, rootDir }),
      devicesFor: this.#options.devicesFor ?? (async () => noDeviceGrants),
      clock,
      log: silentLogger,
      ledger,
      wakes,
      sight,
      scope,
      podsDir: join(rootDir, "pods"),
      runtime,
      runtimeName: () => "containerd",
      runtimeEvents: hinted,
      onOom: () => {},
      admission: new Admission(Object.fromEntries(handlers.entries())),
      context: this.#nodeContext(),
      hostIPs: () => this.#options.hostIPs?.() ?? ["10.0.0.1"],
      readHostDns: this.#options.readHostDns ?? (async () => undefined),
      services: () => ({ state: "none" }),
      runtimeHandlerOf: () => "",
      legacyLogDir: join(rootDir, "links"),
      cgroups: {
        async ensure() {},
        async remove() {},
        pods: this.podCgroups,
      },
      placement: {
        of: () => anywhere,
        placeOf: async () => anywhere,
        hasExclusiveCpus: () => false,
        takeOver() {},
        sweep() {},
      },
      cpusets: { made() {} },
      resizeSettings: { ...noResizeLimits, ...this.#options.resizeSettings },
      onPodsKnown: () => {},
      volumes,
      readConfigMap: undefined,
      readSecret: undefined,
      images: this.#options.images?.(this.runtime, { clock, ledger, metrics }) ?? {
        prefetchImage() {},
        async ensureImage(_pod, _kind, { image = "" }, _sandbox, signal) {
          try {
            const request = { image: { image, annotations: {}, userSpecifiedImage: "", runtimeHandler: "" } };
            const spec = { ...request, auth: undefined, sandboxConfig: undefined };
            return { ref: (await images.pullImage(spec, { signal })).imageRef, uid: undefined, username: "" };
          } catch (error) {
            if (!(error instanceof CriError)) throw error;
            throw new StartError("ErrImagePull", messageOf(error));
          }
        },
      },
      churn: new PodChurn(new StartSlots(clock, startSlots)),
      metrics,
      recordPodEvent: recordEvent,
      recordNodeEvent() {},
      settings: {
        crashBackoff: { initialMs: 10_000, maxMs: 300_000 },
        runtimeRequestTimeoutMs: 120_000,
        minimumContainerAgeMs: 0,
        maxDeadPerContainer: 1,
        maxDeadContainers: -1,
      },
    });
    engine.start(scope);
    return { scope, mux, volumes, engine, sight, ledger, reconsider: wakes.decisions.tell, figures };
  }

  #nodeContext(): PodEngineParts["context"] {
    const { rootDir } = this;
    const { nodeIps } = this.#options;
    const example = exampleContext({ rootDir, podLogsDir: join(rootDir, "logs") });
    return {
      ...example,
      get dns() {
        return nodeIps === undefined ? example.dns : { ...example.dns, nodeIps: nodeIps() };
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.rootDir, { recursive: true, force: true });
  }
}

interface Life {
  readonly scope: TaskScope;
  readonly mux: PodMux;
  readonly volumes: PodVolumes;
  readonly engine: PodEngine;
  readonly sight: PodSight;
  readonly ledger: PodLedger;
  /** What pods are judged by has become known, or has changed. */
  readonly reconsider: () => void;
  readonly figures: MetricRegistries;
}

/** A pod with the uid and the name given, and one container `main` unless told otherwise. */
export function enginePod(name: string, spec: Partial<PodSpec> = {}, metadata: object = {}): IdentifiedPod {
  const main = { name: "main", image: "busybox:1" };
  const { containers = [main], ...rest } = spec;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", uid: name, ...metadata },
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      enableServiceLinks: true,
      securityContext: {},
      ...rest,
      containers: containers.map((container) => ({
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
        ...container,
      })),
    },
  };
}
