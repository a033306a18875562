import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ImageService, RuntimeService } from "../../connections/cri/index.ts";
import { type Clock, type Logger, messageOf, TaskScope, untilAborted } from "../../ground/base/index.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Engine, type EngineInfo, EngineUnavailable } from "./engine/index.ts";
import { LogCopies } from "./logs/log-copies.ts";
import { ShimMetrics } from "./metrics.ts";
import { CniNetwork } from "./network/cni.ts";
import { serveCri } from "./serve.ts";
import { buildParts } from "./service/build-parts.ts";
import { EngineFacts, nanoStamps, type ShimContext } from "./service/context.ts";
import { Looks } from "./service/looks.ts";
import { type ShimSettings, socketPathOf } from "./settings.ts";

export interface ShimPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where others show what is counted. */
  readonly metrics?: ShimMetrics;
}

/** The shim at work; disposing of it ends no container. */
export interface Shim extends AsyncDisposable {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  /** Resolves when a loop of it has died, with why. */
  readonly failed: Promise<unknown>;
}

/** Starts a CRI server in front of Docker. Docker must be there, new enough, and of the driver that is wanted. */
export async function startShim(settings: ShimSettings, ports: ShimPorts, signal: AbortSignal): Promise<Shim> {
  const { clock, log, metrics = new ShimMetrics(clock) } = ports;
  const socketPath = socketPathOf(settings.endpoint);
  const made: AsyncDisposable[] = [];
  const dispose = async (): Promise<void> => {
    for (const one of made.splice(0).toReversed()) await one[Symbol.asyncDispose]();
  };
  const keep = <Part extends AsyncDisposable>(part: Part): Part => {
    made.push(part);
    return part;
  };
  try {
    const engine = openEngine(settings, { clock, metrics }, keep);
    const facts = new EngineFacts(engine);
    await engine.api(signal);
    checkDriver(settings, await facts.info(signal));
    await prepareDirectories(settings.rootDir);
    const scope = keep(new TaskScope());
    const looks = new Looks(engine, clock, scope.signal);
    const context: ShimContext = {
      settings,
      engine,
      clock,
      log,
      facts,
      looks,
      metrics,
      copies: keep(new LogCopies({ clock, log })),
      checkpoints: new Checkpoints(join(settings.rootDir, "sandbox"), log),
      cni: cniOf(settings, ports),
      stamp: nanoStamps(clock),
      lowestOomScore: await lowestOomScore(),
      signal: scope.signal,
    };
    const parts = await buildParts(context, keep);
    scope.spawn("events of docker", (running) => parts.events.run(running));
    keep(await serveCri(parts, socketPath));
    const failed = untilAborted(scope.signal).then((): unknown => scope.signal.reason);
    log.info("the shim in front of docker is ready", { endpoint: settings.endpoint, docker: settings.dockerEndpoint });
    return { runtime: parts.runtime, images: parts.images, failed, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

const retryMs = 500;
const logEveryMs = 15_000;

/** As startShim, but a Docker that is not there yet is waited for, in the open. */
export async function untilShimStarts(settings: ShimSettings, ports: ShimPorts, signal: AbortSignal): Promise<Shim> {
  let loggedAt: number | undefined;
  for (;;) {
    try {
      return await startShim(settings, ports, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof EngineUnavailable)) throw error;
      const now = ports.clock.monotonic();
      if (loggedAt === undefined || now - loggedAt >= logEveryMs) {
        loggedAt = now;
        ports.log.warn("waiting for docker", { docker: settings.dockerEndpoint, error: messageOf(error) });
      }
      await ports.clock.sleep(retryMs, signal);
    }
  }
}

function openEngine(
  settings: ShimSettings,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: ShimMetrics },
  keep: (part: AsyncDisposable) => unknown,
): Engine {
  const socketPath = socketPathOf(settings.dockerEndpoint);
  const engine = new Engine({ socketPath, requestTimeoutMs: settings.requestTimeoutMs }, clock, metrics.onCall);
  keep({ [Symbol.asyncDispose]: async () => engine.close() });
  return engine;
}

function checkDriver({ cgroupDriver }: ShimSettings, info: EngineInfo): void {
  if (cgroupDriver === undefined || cgroupDriver === "" || cgroupDriver === info.cgroupDriver) return;
  throw new Error(
    `misconfiguration: kubelet cgroup driver: "${cgroupDriver}" is different from docker cgroup driver: "${info.cgroupDriver}"`,
  );
}

/** What a shim that was killed was just writing is nobody's. */
async function prepareDirectories(rootDir: string): Promise<void> {
  for (const name of ["sandbox", "network"]) {
    const directory = join(rootDir, name);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    for (const file of await readdir(directory))
      if (/^\.|\.tmp$/.test(file)) await rm(join(directory, file), { force: true });
  }
}

function cniOf({ network, rootDir }: ShimSettings, { clock, log, env }: ShimPorts): CniNetwork | undefined {
  if (network.plugin !== "cni") return undefined;
  const { confDir, binDirs } = network;
  return new CniNetwork({ confDir, binDirs, stateDir: join(rootDir, "network") }, { clock, log, env });
}

/** To protect a process more than our own takes a capability, and Docker's helpers have no more of them than we have. */
async function lowestOomScore(): Promise<number> {
  const resourceCapability = 1n << 24n;
  const status = await readFile("/proc/self/status", "utf8");
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  if ((effective & resourceCapability) !== 0n) return -1000;
  return Number(await readFile("/proc/self/oom_score_adj", "utf8"));
}
