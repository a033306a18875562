import { setImmediate } from "node:timers/promises";
import { readKernelFile, readNetworkOf, readProcess } from "../../../connections/host/index.ts";
import { podUidOfCgroup } from "../../../ground/model/index.ts";
import { Rates } from "../live/rates.ts";
import { figureOf } from "../live/series.ts";
import type { DashboardPorts } from "../ports.ts";
import type { CgroupView, MachineView, PodName, ProcessView } from "../wire.ts";
import { podNames } from "./images-view.ts";

type MachinePorts = Pick<DashboardPorts, "cgroups" | "clock" | "pods" | "machine" | "naming">;

const firstProcess = 1;
const deepest = 5;
const mostCgroups = 300;
const readAtOnce = 10;
const mostProcesses = 200;

/** The machine below the pods. Rates are taken between two looks, so the first one has none. */
export class MachineLook {
  readonly #ports: MachinePorts;
  readonly #rates = new Rates();

  constructor(ports: MachinePorts) {
    this.#ports = ports;
  }

  async view(signal: AbortSignal): Promise<MachineView> {
    const { machine, clock } = this.#ports;
    const { paths, leftOut } = this.#paths();
    const at = clock.monotonic();
    const names = { pod: podNames(this.#ports.pods), containers: containerNames(this.#ports.pods) };
    const cgroups: CgroupView[] = [];
    for (const { path, depth } of paths) {
      cgroups.push(this.#cgroup(path, depth, at, names));
      // Reading never waits, so others get their turn between.
      if (cgroups.length % readAtOnce === 0) await setImmediate();
      signal.throwIfAborted();
    }
    const kept = new Set(paths.map(({ path }) => path));
    this.#rates.forgetAllBut((key) => key.startsWith("net/") || kept.has(key.slice(key.indexOf("/"))));
    return {
      cgroups,
      leftOut,
      interfaces: this.#interfaces(at),
      fileSystems: await machine.fileSystems(),
      numa: await machine.numa(),
    };
  }

  /** Processes directly in a cgroup; undefined: there is no such cgroup. */
  async processes(path: string, signal: AbortSignal): Promise<readonly ProcessView[] | undefined> {
    const { cgroups } = this.#ports;
    // Only what a walk from the top could find.
    if (!/^\/(?:[^/]+(?:\/[^/]+)*)?$/.test(path) || /(?:^|\/)\.\.?(?:\/|$)/.test(path)) return undefined;
    if (path.includes("\0") || !cgroups.exists(path)) return undefined;
    const found: ProcessView[] = [];
    for (const pid of cgroups.processes(path).slice(0, mostProcesses)) {
      const usage = readProcess(pid);
      // A process may have a thousand files to be listed: others get their turn between.
      await setImmediate();
      signal.throwIfAborted();
      if (usage === undefined) continue;
      const { cpuSeconds, residentBytes, openFiles, startedAt } = usage;
      // The name alone: arguments may hold what nobody should see.
      const name = (readKernelFile(`/proc/${pid}/comm`) ?? "").trim();
      found.push({ pid, name, cpuSeconds, residentBytes, openFiles, startedAt: startedAt * 1000 });
    }
    return found;
  }

  #paths(): { readonly paths: readonly { path: string; depth: number }[]; readonly leftOut: number } {
    const { cgroups } = this.#ports;
    const paths: { path: string; depth: number }[] = [];
    let leftOut = 0;
    const visit = (path: string, depth: number): void => {
      if (paths.length >= mostCgroups) {
        leftOut++;
        return;
      }
      paths.push({ path, depth });
      if (depth === deepest) return;
      for (const name of cgroups.children(path).toSorted()) visit(`${path === "/" ? "" : path}/${name}`, depth + 1);
    };
    visit("/", 0);
    return { paths, leftOut };
  }

  #cgroup(path: string, depth: number, at: number, names: Names): CgroupView {
    const { cgroups } = this.#ports;
    const { cpu, memory } = cgroups.usage(path);
    const { io, tasks } = cgroups.details(path);
    const pressures = cgroups.pressures(path);
    const sum = (of: "readBytes" | "writeBytes"): number | undefined =>
      io.length === 0 ? undefined : io.reduce((total, each) => total + each[of], 0);
    const naming = this.#ports.naming();
    const uid = naming && podUidOfCgroup(naming, path.slice(path.lastIndexOf("/") + 1));
    return {
      path,
      depth,
      pod: uid === undefined ? undefined : names.pod(uid),
      container: containerOf(path, names),
      cpu: figureOf(this.#rates.of(`cpu${path}`, at, cpu && cpu.usageNanoseconds / 1e9)),
      memory: figureOf(memory?.workingSetBytes),
      memoryLimit: figureOf(memory?.limitBytes),
      readRate: figureOf(this.#rates.of(`read${path}`, at, sum("readBytes"))),
      writeRate: figureOf(this.#rates.of(`write${path}`, at, sum("writeBytes"))),
      pids: figureOf(tasks),
      cpuPressure: figureOf(pressures?.cpu?.some.avg10),
      memoryPressure: figureOf(pressures?.memory?.some.avg10),
      ioPressure: figureOf(pressures?.io?.some.avg10),
    };
  }

  #interfaces(at: number): MachineView["interfaces"] {
    return readNetworkOf(firstProcess).map((each) => ({
      name: each.name,
      receiveRate: figureOf(this.#rates.of(`net/${each.name}/rx`, at, each.rxBytes)),
      sendRate: figureOf(this.#rates.of(`net/${each.name}/tx`, at, each.txBytes)),
      receivedBytes: each.rxBytes,
      sentBytes: each.txBytes,
      errors: each.rxErrors + each.txErrors,
      dropped: each.rxDropped + each.txDropped,
    }));
  }
}

interface Names {
  readonly pod: (uid: string) => PodName;
  readonly containers: ReadonlyMap<string, string>;
}

/** What containers are called, by the id that the runtime names their cgroups after. */
function containerNames(pods: DashboardPorts["pods"]): ReadonlyMap<string, string> {
  const statuses = pods
    .all()
    .flatMap(({ status }) => [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
      ...(status?.ephemeralContainerStatuses ?? []),
    ]);
  return new Map(
    statuses.flatMap(({ containerID, name }) =>
      containerID === undefined ? [] : [[containerID.replace(/^.*:\/\//, ""), name] as const],
    ),
  );
}

function containerOf(path: string, { containers }: Names): string | undefined {
  const [id] = /[0-9a-f]{64}/.exec(path.slice(path.lastIndexOf("/") + 1)) ?? [];
  return id === undefined ? undefined : containers.get(id);
}
