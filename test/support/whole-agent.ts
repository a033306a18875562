import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Agent } from "../../src/agent/agent.ts";
import { buildAgent } from "../../src/agent/build-agent.ts";
import { kubeconfigCluster } from "../../src/agent/cluster-parts.ts";
import type { Host } from "../../src/agent/inputs.ts";
import { FakeRuntime } from "../../src/beside/hollow/index.ts";
import { CgroupDriver } from "../../src/connections/cri/index.ts";
import { type LogindAccess, logindAccess } from "../../src/connections/host/index.ts";
import type { ApiConnection } from "../../src/connections/kube/index.ts";
import { resources } from "../../src/connections/kube/index.ts";
import { type Logger, messageOf, silentLogger, type Tracer, untilAborted } from "../../src/ground/base/index.ts";
import type { Pod, PodSpec } from "../../src/ground/model/index.ts";
import type { NodeApiPorts, PodResourcesPorts } from "../../src/node/server/index.ts";
import type { ManifestPlan } from "../../src/pod/sources/manifest-plan.ts";
import { FakeApi } from "./fake-api.ts";
import { FakeCgroup2 } from "./fake-cgroup2.ts";
import { FakeClock, settleFiles } from "./fake-clock.ts";
import { configOf, loadFile } from "./load-config.ts";
import { MadeUpPressure } from "./made-up-pressure.ts";
import { machineA } from "./made-up-topology.ts";
import { TestFacts } from "./node-facts.ts";
import { enginePod } from "./test-engine.ts";

const nodeName = "node-1";
const controllers = ["cpu", "memory", "pids", "cpuset", "hugetlb"];

export interface WholeAgentOptions {
  /** Without an API server, pods come from manifests below `manifests`. */
  readonly standalone?: boolean;
  /** The runtime is not there yet. */
  readonly runtimeIsLate?: boolean;
  readonly logind?: LogindAccess;
  /** Where all its files are; otherwise a directory of its own for temporary ones. */
  readonly directory?: string;
  /** More lines of the configuration file. */
  readonly config?: string;
  /** An agent that is gone: this one finds its directory, its runtime and its API server. */
  readonly after?: WholeAgent;
  readonly log?: Logger;
  readonly tracer?: Tracer;
  /** What the machine swaps to. */
  readonly swaps?: readonly string[];
  /** Called at the begin of each stage that touches the machine. */
  readonly onHost?: (what: string) => Promise<void> | void;
}

/** The whole agent as `buildAgent` makes it, on virtual time, over the simulated runtime and an API in memory. */
export class WholeAgent implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly api: FakeApi;
  readonly runtime: FakeRuntime;
  readonly cgroups: FakeCgroup2;
  readonly pressure = new MadeUpPressure();
  readonly agent: Agent;
  readonly directory: string;
  /** What those are shown who ask which resources pods have. */
  podResources: Omit<PodResourcesPorts, "onRequest" | "onGetFailed"> | undefined;
  /** What those are shown who ask the agent of this machine. */
  listeners: NodeApiPorts | undefined;
  /** What became of the agent: undefined while it runs. */
  outcome: "stopped" | Error | undefined;
  readonly #stop = new AbortController();
  readonly #logind: LogindAccess;
  #running: Promise<void> | undefined;

  private constructor(
    directory: string,
    config: Parameters<typeof buildAgent>[0]["config"],
    options: WholeAgentOptions,
  ) {
    this.directory = directory;
    this.#logind = options.logind ?? logindAccess(`unix:path=${join(directory, "no bus")}`);
    const { after } = options;
    this.clock = after?.clock ?? new FakeClock(undefined, settleFiles);
    const { clock } = this;
    this.api = after?.api ?? new FakeApi();
    this.cgroups = after?.cgroups ?? new FakeCgroup2("/cgroup", controllers);
    this.runtime = after?.runtime ?? new FakeRuntime({ clock, events: "offered", cgroupDriver: CgroupDriver.CGROUPFS });
    this.runtime.imageStore.preload("busybox:1");
    if (options.runtimeIsLate === true) this.runtime.kill();
    const { parts } = kubeconfigCluster(clock);
    this.agent = buildAgent({
      config,
      clock,
      random: () => 0.5,
      log: options.log ?? silentLogger,
      tracing: options.tracer && { tracer: options.tracer, run: (signal) => untilAborted(signal) },
      process: {
        pid: 1,
        isRoot: true,
        commandLine: ["nodelet"],
        workDir: directory,
        homeDir: undefined,
        environment: {},
        service: { notifySocket: undefined, watchdogUsec: undefined, watchdogPid: undefined },
        logControl: { stalledMs: 0, verbosity: 0, remember: () => ({ all: () => [] }) },
        configz: () => ({}),
        reloadConfig: async () => ({ kind: "config", config }),
        memory: () => ({ rssBytes: 0, heapUsedBytes: 0, heapTotalBytes: 0 }),
        activeResources: () => [],
        currentConfig: () => config,
        onSettings: () => {},
      },
      host: this.#host(options),
      connectRuntime: () => ({
        runtime: this.runtime.runtime,
        images: this.runtime.images,
        containerdEvents: noEvents,
        containerdUsage: () => Promise.reject(new Error("this is no containerd")),
        health: () => ({ lastAnswerAt: undefined, unansweredInARow: 0, lastFailure: undefined, pending: [] }),
        close: () => {},
      }),
      cluster:
        options.standalone === true
          ? undefined
          : { parts, network: new TestFacts().network, connect: () => this.#connection() },
    });
  }

  static async build(options: WholeAgentOptions = {}): Promise<WholeAgent> {
    const inherited = options.directory ?? options.after?.directory;
    const directory = inherited ?? (await mkdtemp(join(tmpdir(), "nodelet-agent-")));
    const file = `podLogsDir: ${join(directory, "logs")}\nfailSwapOn: false\nstaticPodPath: ${join(directory, "manifests")}\n${options.config ?? ""}`;
    const flags = [`--root-dir=${join(directory, "root")}`, `--hostname-override=${nodeName}`];
    const alone = ["--kubeconfig=", "--authentication-token-webhook=false", "--authorization-mode=AlwaysAllow"];
    const config = configOf(await loadFile(file, options.standalone === true ? [...flags, ...alone] : flags));
    return new WholeAgent(directory, config, options);
  }

  static async start(options: WholeAgentOptions = {}): Promise<WholeAgent> {
    const whole = await WholeAgent.build(options);
    whole.run();
    await whole.advance(0);
    return whole;
  }

  run(): void {
    this.#running = this.agent.run(this.#stop.signal).then(
      () => {
        this.outcome = "stopped";
      },
      (error: unknown) => {
        this.outcome = error instanceof Error ? error : new Error(messageOf(error));
      },
    );
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await settleFiles();
    if (this.outcome instanceof Error) throw this.outcome;
  }

  /** Moves time on until the condition holds. */
  async until(what: string, condition: () => boolean, limitMs = 120_000): Promise<void> {
    const before = this.clock.monotonic();
    await this.advance(0);
    while (!condition()) {
      if (this.clock.monotonic() - before > limitMs)
        throw new Error(`waited ${limitMs} virtual ms in vain for: ${what}`);
      await this.advance(100);
    }
  }

  /** Asks the agent to stop, and gives it the time it needs. */
  async stop(): Promise<void> {
    this.#stop.abort();
    if (this.#running === undefined) return;
    while (this.outcome === undefined) {
      await this.clock.advance(100);
      await settleFiles();
    }
    await this.#running;
  }

  /** Somebody creates a pod that is bound to this node. */
  create(name: string, spec: Partial<PodSpec> = {}): void {
    this.api.put(resources.pods, { namespace: "default", name }, enginePod(name, { ...spec, nodeName }));
  }

  /** As `kubectl delete pod`. */
  delete(name: string, graceSeconds = 1): void {
    const pod = this.pod(name);
    if (pod === undefined) throw new Error(`there is no pod ${name}`);
    const deletionTimestamp = new Date(this.clock.now() + graceSeconds * 1_000).toISOString();
    const metadata = { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: graceSeconds };
    this.api.put(resources.pods, { namespace: "default", name }, { ...pod, metadata });
  }

  pod(name: string): Pod | undefined {
    return this.api.object(resources.pods, { namespace: "default", name });
  }

  /** What the agent says would happen with this text as a manifest of that name. */
  async planOf(name: string, text: string | Uint8Array): Promise<ManifestPlan> {
    const bytes = typeof text === "string" ? Buffer.from(text) : text;
    if (this.listeners === undefined) throw new Error("the agent does not listen yet");
    return (await this.listeners.planManifest({ name, bytes }, new AbortController().signal)) as ManifestPlan;
  }

  /** Names of the containers that run, as "pod/container", in order. */
  running(): readonly string[] {
    return this.runtime
      .containers()
      .filter(({ life }) => life.step === "running")
      .map(({ sandbox, config }) => `${sandbox.config.metadata?.name}/${config.metadata?.name}`)
      .sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  #connection(): ApiConnection {
    const client = this.api as never;
    return {
      clients: {
        main: client,
        events: client,
        reviews: client,
        heartbeat: client,
        server: "10.0.0.1:6443",
        resetHeartbeat: () => {},
        replaceConnections: () => {},
      },
      certificate: undefined,
      open: async () => {},
    };
  }

  #host({ onHost = () => {}, swaps = [] }: WholeAgentOptions): Host {
    const facts = new TestFacts();
    // As many as the made-up topology has.
    const machine = { ...facts.machine, cpus: { logical: 16, physicalCores: 8, sockets: 2 } };
    return {
      facts: {
        machine,
        cgroups: { version: 2, mountPoint: "/cgroup", controllers },
        hugePages: new Map(),
        hugePageSizes: [],
        thermalThrottlePaths: [],
        selinuxEnabled: false,
        containerFileLabel: "",
        appArmorEnabled: false,
        canControlSwap: false,
        pidLimit: 32_768,
      },
      readTopology: async () => machineA,
      swaps: async () => {
        await onHost("swaps");
        return swaps;
      },
      canMountWithoutSwap: async () => false,
      holdLock: async () => onHost("holdLock"),
      prepareDirectories: async () => {
        await onHost("prepareDirectories");
        return { [Symbol.dispose]: () => void onHost("release") };
      },
      tuneKernel: async () => onHost("tuneKernel"),
      tuneProcess: async () => onHost("tuneProcess"),
      listen: async (_config, _rootDir, ports) => {
        this.listeners = ports;
        await onHost("listen");
      },
      servePodResources: async (_path, _settings, ports) => {
        this.podResources = ports;
        return { [Symbol.asyncDispose]: async () => {} };
      },
      openDevicePlugins: async () => {
        await onHost("openDevicePlugins");
        return { wereThere: true, [Symbol.asyncDispose]: async () => {} };
      },
      containerLogsDir: join(this.directory, "links"),
      cgroupFiles: this.cgroups,
      processes: { own: 1, isKernelThread: async () => false, areShared: async () => false },
      findSystemd: async () => undefined,
      logind: () => this.#logind,
      openKernelLog: () => Promise.reject(new Error("there is no kernel")),
      oomKills: () => 0,
      addresses: async () => {
        await onHost("addresses");
        return ["10.0.0.5"];
      },
      filesystemBytes: async () => 100_000_000_000n,
      pressure: this.pressure,
      resolvConf: async () => undefined,
      volumeKinds: () => [],
      runTool: () => Promise.reject(new Error("there is no program")),
    };
  }
}

async function* noEvents(): AsyncGenerator<never> {}
