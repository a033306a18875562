import { constants } from "node:fs";
import { mkdir, open, readFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { type Clock, isThere } from "../../ground/base/index.ts";
import {
  hostPort,
  isRunning,
  lastLines,
  loopbackOf,
  type MachineLayout,
  processOf,
  spawnDetached,
  stopProcess,
} from "./machine/index.ts";
import { usablePort } from "./ports.ts";

/** What the agent needs to know of the local API server. */
export interface ApiAccess {
  readonly kubeconfig: string;
  readonly clientCaFile: string;
}

const preferredPort = 6443;
const patienceMs = 60_000;

function apiAccess(layout: MachineLayout, nodeName: string): ApiAccess {
  return {
    kubeconfig: join(layout.apiDir, `node-${nodeName}.kubeconfig`),
    clientCaFile: join(layout.apiDir, "ca.crt"),
  };
}

/** Starts the machine's API server, kept running from then on whether we stay or not, or finds it. Returns when it answers. */
export async function ensureApi(
  layout: MachineLayout,
  nodeName: string,
  home: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<ApiAccess> {
  const keeper = (await processOf(layout, "api-keeper")) ?? (await launch(layout, nodeName, home, clock));
  const deadline = clock.monotonic() + patienceMs;
  const found = apiAccess(layout, nodeName);
  while (!(await isThere(found.kubeconfig)) || !(await answers(layout))) {
    if (keeper === undefined || !(await isRunning(keeper)) || clock.monotonic() > deadline) {
      const log = await lastLines(layout.apiLog);
      throw new Error(`the API server does not answer; its log (${layout.apiLog}) says last:\n${log}`);
    }
    await clock.sleep(20, signal);
  }
  return found;
}

export async function stopApi(layout: MachineLayout, clock: Clock): Promise<void> {
  for (const role of ["api-keeper", "api"] as const) {
    const process = await processOf(layout, role);
    if (process !== undefined) await stopProcess(process, 5_000, clock);
  }
}

async function launch(layout: MachineLayout, nodeName: string, home: string, clock: Clock) {
  // Without its keeper it would not come back; and it holds the store, which has room for one.
  await stopApi(layout, clock);
  await mkdir(layout.apiDir, { recursive: true, mode: 0o700 });
  const host = loopbackOf();
  const port = await usablePort(host, (await lastPort(layout)) ?? preferredPort);
  const log = await open(layout.apiLog, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
  const server = [
    `--dir=${layout.apiDir}`,
    `--listen=${hostPort(host, port)}`,
    `--kubelet-host=${host}`,
    `--node=${nodeName}`,
  ];
  const program = join(home, "bin", "nodelet");
  const keeper = join(home, "bin", "keep-running");
  await spawnDetached(keeper, [program, "api-server", ...server], log).finally(() => log.close());
  return await processOf(layout, "api-keeper");
}

/** The port of the last time: who keeps a kubeconfig somewhere should find the server there again. */
async function lastPort(layout: MachineLayout): Promise<number | undefined> {
  const url = await serverUrl(layout);
  return url === undefined ? undefined : Number(url.port);
}

async function serverUrl({ adminKubeconfig }: MachineLayout): Promise<URL | undefined> {
  const text = await readFile(adminKubeconfig, "utf8").catch(() => "");
  const server: unknown = text === "" ? undefined : JSON.parse(text).clusters?.[0]?.cluster?.server;
  return typeof server === "string" ? new URL(server) : undefined;
}

async function answers(layout: MachineLayout): Promise<boolean> {
  const url = await serverUrl(layout);
  const ca = await readFile(join(layout.apiDir, "ca.crt")).catch(() => undefined);
  if (url === undefined || ca === undefined) return false;
  return await new Promise((resolve) => {
    const asked = request(new URL("/readyz", url), { ca, agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once("error", () => resolve(false));
    asked.once("timeout", () => asked.destroy(new Error("no answer")));
    asked.end();
  });
}
