import { appendFile, cp, mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../../src/base/index.ts";
import { accessRules } from "../../../src/cli/agent-process.ts";
import { CriClient } from "../../../src/cri/index.ts";
import { type KubeClient, resources } from "../../../src/kube/index.ts";
import type { Pod } from "../../../src/model/index.ts";
import { eventually, isReady, TestAgent } from "../agent.ts";
import { adminClients } from "../cluster-pods.ts";
import { startContainerd, type TestContainerd } from "../containerd.ts";
import { freePort } from "../daemon.ts";
import { ServingStatus, serveHealth } from "../grpc-health.ts";
import { Outage } from "../outage.ts";
import { seededRandom } from "../seeded-random.ts";
import { CgroupWatch } from "./cgroup-watch.ts";
import { Churn } from "./churn.ts";
import { type ControlPlane, findControlPlane, nodeName, startLocalControlPlane } from "./control-plane.ts";
import { leftovers } from "./leftovers.ts";
import { Makers } from "./makers.ts";
import { type Ending, planRounds, type Round } from "./rounds.ts";
import { flagLabels, gate, laterLabels, type SteadyPod, steadyPods } from "./steady-pods.ts";
import { differences, type Harm, steadyName, Witness } from "./witness.ts";

export interface ProofOptions {
  readonly seed: number;
  readonly pods: number;
  readonly endings: Readonly<Record<Ending, number>>;
  /** The directory of a control plane that is there already; without it a local API server is started. */
  readonly cluster?: string | undefined;
  /** The directory of another build, for changes of the binary; without it, a copy of this one elsewhere. */
  readonly otherBuild?: string | undefined;
  readonly report: (line: string) => void;
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
  readonly cgroupChanges: number;
  /** How often the agent ended although nobody ended it. */
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
const place = { namespace: "default" } as const;
const soon = (): AbortSignal => AbortSignal.timeout(20_000);
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
  #ownEnds = 0;

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

    this.#witness.begin();
    const first = this.#witness.pods();
    const watched = [...first.values()].filter(({ status }) => status?.phase === "Running").map(cgroupUid);
    const weather: Record<string, number> = {};
    let cgroupChanges: readonly string[] = [];
    let limitsWatched = 0;
    {
      await using cgroups = await CgroupWatch.start(containerd.cgroupRoot, new Set(watched));
      limitsWatched = cgroups.size;
      const rounds = planRounds(endings, this.#random, plane.crash === undefined ? [] : ["server crash"]);
      for (const [index, round] of rounds.entries()) {
        weather[round.weather] = (weather[round.weather] ?? 0) + 1;
        await this.#play(round);
        const isLast = index === rounds.length - 1;
        if (!round.isHasty || isLast) await this.#settle(first);
        if (this.#witness.incidents.length > 0) break;
        report(
          `${index + 1}/${rounds.length} ${round.ending}, ${round.weather}, after ${Math.round(round.momentMs)} ms: ` +
            `${cgroups.changes.length} changes of limits`,
        );
      }
      await cgroups.look();
      cgroupChanges = cgroups.changes;
    }
    this.#witness.end();
    await this.#churn.end();
    for (const pod of steady) await this.#makers.unmake(pod);
    if (plane.controllers === "real") {
      // ReplicaSets would replace pods that are deleted before they are gone themselves.
      await pause(collectedMs);
      await this.#makers.deletePods();
    }
    const left = await leftovers(containerd, this.#cri, settleMs);
    if (this.#witness.incidents.length + cgroupChanges.length + left.length > 0) await this.#keepLogs();
    const count = (harm: Harm): number => this.#witness.incidents.filter((incident) => incident.harm === harm).length;
    return {
      seed,
      pods: steady.length,
      containers: [...first.values()].reduce((sum, pod) => sum + (pod.status?.containerStatuses?.length ?? 0), 0),
      endings,
      weather,
      churned: this.#churn.created,
      limitsWatched,
      restarts: count("restart"),
      flips: count("flip"),
      rejections: count("rejection"),
      replacements: count("replacement"),
      otherChanges: count("change"),
      cgroupChanges: cgroupChanges.length,
      ownEnds: this.#ownEnds,
      left: left.length,
      seconds: Math.round((systemClock.monotonic() - began) / 1000),
      incidents: [
        ...this.#witness.incidents.map(({ harm, pod, what }) => `${harm} of ${pod}: ${what}`),
        ...cgroupChanges.map((change) => `cgroup ${change}`),
        ...left.map((line) => `left: ${line}`),
      ],
    };
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
    if (agent.exitCode !== undefined) {
      this.#ownEnds++;
      return;
    }
    if (ending === "SIGTERM") await agent.stop();
    else await agent.kill9();
    if (ending === "another binary") this.#builds.reverse();
    agent.runFrom(this.#builds[0] ?? home);
  }

  #begin(): Promise<void> {
    return this.#parts.agent.begin();
  }

  /** The agent answers and shows every steady pod as it was. */
  async #settle(first: ReadonlyMap<string, Pod>): Promise<void> {
    const { agent } = this.#parts;
    let unlike: readonly string[] = [];
    const isAsBefore = async (): Promise<boolean> => {
      // What the API has seen happen can't be undone.
      if (this.#witness.incidents.length > 0) return true;
      if (agent.exitCode !== undefined) {
        this.#ownEnds++;
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
    if (otherBuild !== undefined) {
      this.#builds.push(otherBuild);
      return;
    }
    const copy = join(this.#parts.containerd.stateDir, "other-build");
    await mkdir(copy);
    for (const part of ["bin", "dist", "package.json"])
      await cp(join(home, part), join(copy, part), { recursive: true });
    await symlink(join(home, "node_modules"), join(copy, "node_modules"));
    await appendFile(join(copy, "dist", "nodelet.mjs"), "\n// another build\n");
    this.#builds.push(copy);
  }

  async [Symbol.asyncDispose](): Promise<void> {
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

/** The uid that the pod's cgroup is named by. */
function cgroupUid({ metadata }: Pod): string {
  return metadata?.annotations?.["kubernetes.io/config.hash"] ?? metadata?.uid ?? "";
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
