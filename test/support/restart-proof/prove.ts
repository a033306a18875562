import { appendFile, cp, mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { accessRules } from "../../../src/beside/cli/agent-process.ts";
import { CriClient } from "../../../src/connections/cri/index.ts";
import { type KubeClient, resources } from "../../../src/connections/kube/index.ts";
import { systemClock } from "../../../src/ground/base/index.ts";
import type { Pod } from "../../../src/ground/model/index.ts";
import { eventually, isReady, TestAgent } from "../agent.ts";
import { adminClients } from "../cluster-pods.ts";
import { startContainerd, type TestContainerd } from "../containerd.ts";
import { freePort } from "../free-port.ts";
import { ServingStatus, serveHealth } from "../grpc-health.ts";
import { Outage } from "../outage.ts";
import { seededRandom } from "../seeded-random.ts";
import { soon } from "../until.ts";
import { Churn } from "./churn.ts";
import { type ControlPlane, findControlPlane, nodeName, startLocalControlPlane } from "./control-plane.ts";
import { kindsOfRemains, leftovers, look } from "./leftovers.ts";
import { Makers } from "./makers.ts";
import { Observation } from "./observation.ts";
import { type Ending, planRounds, type Round } from "./rounds.ts";
import { flagLabels, gate, laterLabels, type SteadyPod, steadyPods } from "./steady-pods.ts";
import { differences, steadyName, Witness } from "./witness.ts";

export interface ProofOptions {
  readonly seed: number;
  readonly pods: number;
  readonly endings: Readonly<Record<Ending, number>>;
  /** The directory of a control plane that is there already; without it a local API server is started. */
  readonly cluster?: string | undefined;
  /**
   * The directory of another build that has the node for a while at each change of the binary; without it, a copy of this
   * one takes turns with it.
   */
  readonly otherBuild?: string | undefined;
  /** Does what must not happen, once the agent has ended for the last time: for tests of the proof itself. */
  readonly meddle?: ((tools: MeddleTools) => Promise<void>) | undefined;
  readonly report: (line: string) => void;
}

export interface MeddleTools extends ProofParts {
  readonly cri: CriClient;
  readonly observed: Observation;
}

export interface ProofFigures {
  readonly seed: number;
  readonly pods: number;
  readonly containers: number;
  readonly endings: Readonly<Record<Ending, number>>;
  readonly weather: Readonly<Record<string, number>>;
  readonly churned: number;
  readonly limitsWatched: number;
  readonly restarts: number;
  readonly flips: number;
  readonly rejections: number;
  readonly replacements: number;
  readonly otherChanges: number;
  readonly runtimeChanges: number;
  readonly cgroupChanges: number;
  /** How often the agent ended although nobody ended it, or failed to end as it should. */
  readonly ownEnds: number;
  readonly left: number;
  readonly seconds: number;
  /** Every incident, one line each; empty when all is as it must be. */
  readonly incidents: readonly string[];
}

const home = fileURLToPath(new URL("../../..", import.meta.url));
const startMs = 180_000;
const settleMs = 60_000;
const collectedMs = 15_000;
const quietMs = 10_000;
const place = { namespace: "default" } as const;
const forever = new AbortController().signal;
const pause = (ms: number): Promise<void> => systemClock.sleep(ms, forever);

/** Ends the agent again and again among pods, under all weathers; tells what the pods noticed. */
export async function proveRestarts(options: ProofOptions): Promise<ProofFigures> {
  await using containerd = await startContainerd();
  await using plane = await (options.cluster === undefined
    ? startLocalControlPlane(containerd)
    : findControlPlane(options.cluster));
  await using outage = await Outage.before(plane.url);
  using clients = await adminClients(plane.adminKubeconfig);
  await using agent = await startAgent(containerd, plane, outage);
  await using proof = new Proof(options, { containerd, plane, outage, admin: clients.main, agent });
  return await proof.run();
}

interface ProofParts {
  readonly containerd: TestContainerd;
  readonly plane: ControlPlane;
  readonly outage: Outage;
  readonly admin: KubeClient;
  readonly agent: TestAgent;
}

class Proof implements AsyncDisposable {
  readonly #options: ProofOptions;
  readonly #parts: ProofParts;
  readonly #cri: CriClient;
  readonly #witness: Witness;
  readonly #random: () => number;
  readonly #churn: Churn;
  readonly #makers: Makers;
  readonly #builds: string[] = [home];
  readonly #ownEnds: string[] = [];
  #observation: Observation | undefined;

  constructor(options: ProofOptions, parts: ProofParts) {
    const { admin, plane, agent, containerd } = parts;
    this.#options = options;
    this.#parts = parts;
    this.#random = seededRandom(options.seed);
    this.#witness = new Witness(admin);
    this.#churn = new Churn(admin, containerd.images.busybox, this.#random);
    this.#makers = new Makers(plane, admin, agent);
    const settings = { runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 60_000 };
    this.#cri = new CriClient(settings, { clock: systemClock });
  }

  async run(): Promise<ProofFigures> {
    const began = systemClock.monotonic();
    const { report, endings, seed } = this.#options;
    const { containerd, plane } = this.#parts;
    await this.#prepareNode();
    await this.#prepareBuilds();
    using health = await serveHealth(ServingStatus.SERVING);
    const steady = await steadyPods(this.#options.pods, {
      image: containerd.images.busybox,
      healthPort: health.port,
      hostPort: freePort,
      hostDirectory: containerd.stateDir,
    });
    for (const pod of steady) await this.#makers.make(pod);
    await this.#untilUp(steady);
    report(`${steady.length} pods are up after ${Math.round((systemClock.monotonic() - began) / 1000)} s`);

    const weather: Record<string, number> = {};
    await this.#observe();
    const { limitsWatched, containers } = this.#sizes();
    const rounds = planRounds(endings, this.#random, plane.crash === undefined ? [] : ["server crash"]);
    for (const [index, round] of rounds.entries()) {
      weather[round.weather] = (weather[round.weather] ?? 0) + 1;
      const isVisit = round.ending === "another binary" && this.#options.otherBuild !== undefined;
      await (isVisit ? this.#visit() : this.#play(round));
      const isLast = index === rounds.length - 1;
      if (!round.isHasty || isVisit || isLast) await this.#settle();
      if (this.#harm().length > 0) break;
      report(`${index + 1}/${rounds.length} ${round.ending}, ${round.weather}, after ${Math.round(round.momentMs)} ms`);
    }
    await this.#options.meddle?.({ ...this.#parts, cri: this.#cri, observed: this.#observed });
    await this.#observed.cgroups.look();
    const remains = await look(containerd, this.#cri);
    const blind = kindsOfRemains.filter((kind) => !remains.some((line) => line.startsWith(kind)));
    await this.#observed[Symbol.asyncDispose]();
    await this.#churn.end();
    for (const pod of steady) await this.#makers.unmake(pod);
    // Controllers are given their time to clear away what they made.
    if (plane.controllers === "real") await pause(collectedMs);
    const podsInApi = async (): Promise<readonly string[]> => {
      const names = this.#witness.names();
      if (names.length > 0 && plane.controllers === "real") await this.#makers.deletePods();
      return names;
    };
    const left = await leftovers(containerd, this.#cri, settleMs, podsInApi);
    const incidents = [
      ...this.#harm(),
      ...blind.map((kind) => `no ${kind} was seen while pods ran: what is left of them would not be either`),
      ...left.map((line) => `left: ${line}`),
    ];
    if (incidents.length > 0 && this.#options.meddle === undefined) await this.#keepLogs();
    return {
      seed,
      pods: steady.length,
      containers,
      endings,
      weather,
      churned: this.#churn.created,
      limitsWatched,
      restarts: this.#observed.count("restart"),
      flips: this.#observed.count("flip"),
      rejections: this.#observed.count("rejection"),
      replacements: this.#observed.count("replacement"),
      otherChanges: this.#observed.count("change"),
      runtimeChanges: this.#observed.runtime.changes.length,
      cgroupChanges: this.#observed.cgroups.changes.length,
      ownEnds: this.#ownEnds.length,
      left: left.length,
      seconds: Math.round((systemClock.monotonic() - began) / 1000),
      incidents,
    };
  }

  get #observed(): Observation {
    if (this.#observation === undefined) throw new Error("nobody has begun to observe the pods");
    return this.#observation;
  }

  async #observe(): Promise<void> {
    this.#observation = await Observation.begin(this.#witness, this.#cri, this.#parts.containerd.cgroupRoot);
  }

  #sizes(): { readonly limitsWatched: number; readonly containers: number } {
    const { first, cgroups } = this.#observed;
    const containers = [...first.values()].reduce((sum, pod) => sum + (pod.status?.containerStatuses?.length ?? 0), 0);
    return { limitsWatched: cgroups.size, containers };
  }

  /** All that must not have happened so far. */
  #harm(): readonly string[] {
    return [...this.#observed.lines(), ...this.#ownEnds];
  }

  /**
   * Another build has the node for a while, and hands it back as it is then. What that one does to pods is told, not
   * judged: it may be an old one with faults that are mended since.
   */
  async #visit(): Promise<void> {
    const { agent } = this.#parts;
    const { report, otherBuild = home } = this.#options;
    await agent.kill9();
    agent.runFrom(otherBuild);
    await agent.launch();
    await this.#churn.stir();
    await this.#untilQuiet();
    await this.#observed.runtime.look();
    const seen = this.#observed.lines();
    report(`the other build did ${seen.length} things to pods, such as: ${seen[0] ?? "none"}`);
    await this.#observed[Symbol.asyncDispose]();
    await (this.#random() < 0.5 ? agent.kill9() : agent.stop());
    await this.#observe();
    agent.runFrom(home);
    await this.#begin();
  }

  /** Nothing that matters has changed for a while. */
  async #untilQuiet(): Promise<void> {
    let before: ReadonlyMap<string, Pod> = new Map();
    let sinceMs = systemClock.monotonic();
    const isQuiet = async (): Promise<boolean> => {
      const now = this.#witness.pods();
      const isSame =
        now.size === before.size &&
        [...now].every(([name, pod]) => {
          const was = before.get(name);
          return was !== undefined && differences(was, pod).length === 0;
        });
      if (!isSame) sinceMs = systemClock.monotonic();
      before = now;
      await pause(500);
      return systemClock.monotonic() - sinceMs > quietMs;
    };
    await eventually(isQuiet, "the pods come to rest", startMs);
  }

  async #play(round: Round): Promise<void> {
    const { outage, plane, containerd } = this.#parts;
    await this.#churn.stir();
    await pause(round.momentMs);
    switch (round.weather) {
      case "calm":
        await this.#end(round.ending);
        await pause(round.awayMs);
        return await this.#begin();
      case "outage":
        await outage.begin();
        await pause(round.awayMs);
        await this.#end(round.ending);
        await this.#begin();
        await pause(round.stormMs);
        return await outage.end();
      case "outage at the start":
        await this.#end(round.ending);
        await outage.begin();
        await this.#churn.stir();
        await this.#begin();
        await pause(round.stormMs);
        return await outage.end();
      case "server crash":
        await plane.crash?.();
        await this.#end(round.ending);
        await this.#begin();
        await pause(round.stormMs / 2);
        return await plane.comeBack();
      case "runtime crash":
        await containerd.kill9();
        await pause(round.awayMs);
        await this.#end(round.ending);
        await this.#begin();
        await pause(round.stormMs / 3);
        return await containerd.restart();
      case "runtime crash at the start":
        await this.#end(round.ending);
        await this.#begin();
        await pause(round.awayMs);
        await containerd.kill9();
        await pause(round.stormMs / 3);
        return await containerd.restart();
    }
  }

  async #end(ending: Ending): Promise<void> {
    const { agent } = this.#parts;
    if (agent.end !== undefined) return await this.#noteOwnEnd();
    if (ending === "SIGTERM") {
      const code = await agent.stop();
      // One that was asked before it listens to signals ends by them.
      if (code !== 0 && code !== null) await this.#noteOwnEnd();
    } else await agent.kill9();
    if (ending === "another binary") this.#builds.reverse();
    agent.runFrom(this.#builds[0] ?? home);
  }

  /** Nobody asked it to end, or not like that. */
  async #noteOwnEnd(): Promise<void> {
    const { agent } = this.#parts;
    this.#ownEnds.push(`the agent ended ${agent.end} by itself:\n${await agent.logTail()}`);
  }

  #begin(): Promise<void> {
    return this.#parts.agent.begin();
  }

  /** The agent answers and shows every steady pod as it was. */
  async #settle(): Promise<void> {
    const { agent } = this.#parts;
    const { first, runtime } = this.#observed;
    let unlike: readonly string[] = [];
    const isAsBefore = async (): Promise<boolean> => {
      // What the API has seen happen can't be undone.
      if (this.#harm().length > 0) return true;
      if (agent.end !== undefined) {
        await this.#noteOwnEnd();
        await this.#begin();
      }
      const shown = await agent.client.pods(AbortSignal.timeout(5_000));
      const byName = new Map(shown.map((pod) => [steadyName(pod), pod]));
      unlike = [...first].flatMap(([name, was]) => {
        const is = byName.get(name);
        if (is === undefined) return [`${name} is not shown`];
        return differences(sameUid(was), sameUid(is)).map(({ what }) => `${name}: ${what}`);
      });
      return unlike.length === 0;
    };
    try {
      await eventually(isAsBefore, "the agent shows all pods as before", settleMs);
      await runtime.look();
    } catch (error) {
      throw new Error([String(error), ...unlike, "the agent's log:", await agent.logTail()].join("\n"));
    }
  }

  async #untilUp(steady: readonly SteadyPod[]): Promise<void> {
    const opened = new Set<string>();
    let missing: readonly string[] = [];
    const areUp = async (): Promise<boolean> => {
      const pods = this.#witness.pods();
      for (const pod of pods.values()) await this.#openGate(pod, opened);
      missing = steady.filter((wanted) => !isUp(wanted, pods.get(wanted.name))).map(({ name }) => name);
      return missing.length === 0;
    };
    try {
      await eventually(areUp, "all pods are up", startMs);
    } catch (error) {
      const states = missing.map((name) => `${name}: ${JSON.stringify(this.#witness.pods().get(name)?.status)}`);
      throw new Error([String(error), ...states, await this.#parts.agent.logTail()].join("\n"));
    }
  }

  /** Says of a pod with a readiness gate what its load balancer would. */
  async #openGate({ spec, metadata }: Pod, opened: Set<string>): Promise<void> {
    const name = metadata?.name ?? "";
    if (spec?.readinessGates === undefined || opened.has(name)) return;
    const body = { status: { conditions: [{ type: gate, status: "True" }] } };
    const ref = { ...place, name, subresource: "status" };
    await this.#parts.admin.patch(resources.pods, ref, { type: "strategic", body }, soon());
    opened.add(name);
  }

  /** The logs would go with the machine; whoever looks for the cause needs them. */
  async #keepLogs(): Promise<void> {
    const { containerd, agent } = this.#parts;
    const directory = await mkdtemp(join(tmpdir(), "nodelet-restarts-"));
    for (const log of [agent.logFile, containerd.layout.containerdLog]) await cp(log, join(directory, basename(log)));
    this.#options.report(`the logs of the agent and of containerd are in ${directory}`);
  }

  async #prepareNode(): Promise<void> {
    const { admin } = this.#parts;
    const patch = { type: "merge", body: { metadata: { labels: laterLabels } } } as const;
    await eventually(
      () => admin.patch(resources.nodes, { name: nodeName }, patch, soon()),
      "the node is there",
      startMs,
    );
    const metadata = { name: "proof" };
    const data = { word: "hello" };
    await admin.create(resources.configMaps, place, { apiVersion: "v1", kind: "ConfigMap", metadata, data }, soon());
    const secret = { apiVersion: "v1", kind: "Secret", metadata, stringData: data };
    await admin.create(resources.secrets, place, secret, soon());
  }

  async #prepareBuilds(): Promise<void> {
    const { otherBuild } = this.#options;
    if (otherBuild !== undefined) return;
    const copy = join(this.#parts.containerd.stateDir, "other-build");
    await mkdir(copy);
    for (const part of ["bin", "dist", "package.json"])
      await cp(join(home, part), join(copy, part), { recursive: true });
    await symlink(join(home, "node_modules"), join(copy, "node_modules"));
    await appendFile(join(copy, "dist", "nodelet.mjs"), "\n// another build\n");
    this.#builds.push(copy);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#observation?.[Symbol.asyncDispose]();
    this.#cri.close();
    await this.#witness[Symbol.asyncDispose]();
    const { admin, plane } = this.#parts;
    if (plane.controllers === "none") return;
    for (const resource of [resources.configMaps, resources.secrets]) {
      await admin.delete(resource, { ...place, name: "proof" }, {}, soon()).catch(() => {});
    }
  }
}

async function startAgent(containerd: TestContainerd, plane: ControlPlane, outage: Outage): Promise<TestAgent> {
  const kubeconfig = join(containerd.stateDir, "node.kubeconfig");
  await writeFile(kubeconfig, plane.nodeKubeconfig.replaceAll(plane.url, outage.url), { mode: 0o600 });
  const labels = Object.entries(flagLabels).map((label) => label.join("="));
  const flags = [`--kubeconfig=${kubeconfig}`, `--node-labels=${labels.join(",")}`];
  return await TestAgent.start(containerd, accessRules({ kubeconfig, clientCaFile: plane.caFile }), flags);
}

/** The agent names a static pod by its own uid, the API by its mirror's. */
function sameUid(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, uid: "" } };
}

function isUp({ becomes }: SteadyPod, pod: Pod | undefined): boolean {
  switch (becomes) {
    case "ready":
      return pod !== undefined && isReady(pod);
    case "succeeded":
      return pod?.status?.phase === "Succeeded";
    case "unready":
      return pod?.status?.containerStatuses?.every(({ started }) => started === true) ?? false;
  }
}
