import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { accessRules } from "../../../src/beside/cli/agent-process.ts";
import { run } from "../../../src/beside/cli/machine/index.ts";
import { isNotFound, resources } from "../../../src/connections/kube/index.ts";
import { eventually, TestAgent } from "../agent.ts";
import { adminClients } from "../cluster-pods.ts";
import type { TestContainerd } from "../containerd.ts";
import { freePort } from "../free-port.ts";
import { soon } from "../until.ts";

export const nodeName = "test-node";

/** The API server that the proof's node belongs to. */
export interface ControlPlane extends AsyncDisposable {
  readonly url: string;
  readonly adminKubeconfig: string;
  /** The text of the kubeconfig of `nodeName`. */
  readonly nodeKubeconfig: string;
  readonly caFile: string;
  /** Whether somebody makes pods of DaemonSets, Deployments and StatefulSets; else the proof makes their pods. */
  readonly controllers: "real" | "none";
  /** Ends the API server as a crash would, or undefined where that is not ours to do; `comeBack` starts it again. */
  readonly crash: (() => Promise<void>) | undefined;
  comeBack(): Promise<void>;
}

/** The local API server as a process of its own, so that it can be killed. */
export async function startLocalControlPlane({ layout }: TestContainerd): Promise<ControlPlane> {
  const { apiDir: dir, apiLog, adminKubeconfig } = layout;
  const listen = `127.0.0.1:${await freePort()}`;
  const args = ["api-server", `--dir=${dir}`, `--listen=${listen}`, "--kubelet-host=127.0.0.1", `--node=${nodeName}`];
  let child: ChildProcess | undefined;
  const crash = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  const comeBack = async (): Promise<void> => {
    await using log = await open(apiLog, "a");
    child = spawn("bin/nodelet", args, { stdio: ["ignore", log.fd, log.fd] });
    await untilItAnswers(adminKubeconfig);
  };
  try {
    await comeBack();
  } catch (error) {
    await crash();
    throw error;
  }
  return {
    url: `https://${listen}`,
    adminKubeconfig,
    nodeKubeconfig: await readFile(join(dir, `node-${nodeName}.kubeconfig`), "utf8"),
    caFile: join(dir, "ca.crt"),
    controllers: "none",
    crash,
    comeBack,
    [Symbol.asyncDispose]: crash,
  };
}

/**
 * A control plane that somebody else has started. The directory holds admin.kubeconfig, node.kubeconfig (of `nodeName`)
 * and ca.crt, and may hold the programs api-crash and api-start.
 */
export async function findControlPlane(directory: string): Promise<ControlPlane> {
  const adminKubeconfig = join(directory, "admin.kubeconfig");
  const [, url] = /server: *"?(https:[^"\s]+)/.exec(await readFile(adminKubeconfig, "utf8")) ?? [];
  if (url === undefined) throw new Error(`${adminKubeconfig} names no server; it wants a line "server: https://…"`);
  await forgetNode(adminKubeconfig);
  const crashProgram = join(directory, "api-crash");
  const canCrash = await stat(crashProgram).catch(() => undefined);
  return {
    url,
    adminKubeconfig,
    nodeKubeconfig: await readFile(join(directory, "node.kubeconfig"), "utf8"),
    caFile: join(directory, "ca.crt"),
    controllers: "real",
    crash: canCrash === undefined ? undefined : async () => void (await run(crashProgram, [])),
    async comeBack() {
      await run(join(directory, "api-start"), []);
      await untilItAnswers(adminKubeconfig);
    },
    async [Symbol.asyncDispose]() {},
  };
}

/** The built agent as the node of a control plane. */
export async function joinControlPlane(containerd: TestContainerd, plane: ControlPlane): Promise<TestAgent> {
  const kubeconfig = join(containerd.stateDir, "node.kubeconfig");
  await writeFile(kubeconfig, plane.nodeKubeconfig, { mode: 0o600 });
  const access = accessRules({ kubeconfig, clientCaFile: plane.caFile });
  // A real API server asks the node at the address that it reports, which is none of the loopback.
  return await TestAgent.start(containerd, { ...access, address: "0.0.0.0" }, [`--kubeconfig=${kubeconfig}`]);
}

/** A Node of an earlier run keeps its labels and resources: what flags say of them counts only for a new one. */
async function forgetNode(adminKubeconfig: string): Promise<void> {
  using clients = await adminClients(adminKubeconfig);
  try {
    await clients.main.delete(resources.nodes, { name: nodeName }, {}, soon());
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

async function untilItAnswers(adminKubeconfig: string): Promise<void> {
  await eventually(
    async () => {
      using clients = await adminClients(adminKubeconfig);
      return await clients.main.getText("/readyz", AbortSignal.timeout(2_000));
    },
    "the API server answers",
    60_000,
  );
}
