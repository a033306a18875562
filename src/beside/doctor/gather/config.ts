import { dirname, resolve } from "node:path";
import { hasCode } from "../../../ground/base/index.ts";
import {
  type ConfigIo,
  configReport,
  describeConfigProblem,
  findDropIns,
  loadConfig,
  longestConfigFile,
  systemIo,
} from "../../../ground/config/index.ts";
import { type ConfigFacts, type ConfigFiles, settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import type { AgentFacts } from "./agent.ts";
import type { FileFact } from "./files.ts";
import { clientFilesOf } from "./kubeconfig.ts";
import { isAgent, type ProcessFact, rootDirOf } from "./processes.ts";

/** Where kubeadm puts what it starts a kubelet with. */
const kubeadm = {
  config: "/var/lib/kubelet/config.yaml",
  kubeconfig: "/etc/kubernetes/kubelet.conf",
  bootstrap: "/etc/kubernetes/bootstrap-kubelet.conf",
} as const;

/** What is in effect; where no agent can be asked, what one would start with. */
export async function gatherConfig(world: ExaminedWorld, need: NeedFact): Promise<ConfigFacts> {
  if (world.flags.length > 0) return await load(world, world.flags, world.cwd, "the flags that were given");
  const agent = await need("agent");
  if (agent.state === "running") {
    const { version, pid } = agent.self;
    return {
      report: agent.config,
      subject: `the running agent, nodelet ${version}, pid ${pid}`,
      drift: agent.config.drift,
    };
  }
  const running = agentProcess(await need("processes"), world);
  if (running !== undefined) {
    const { pid, program, args } = running;
    const cwd = (await world.machine.link(`/proc/${pid}/cwd`)) ?? "/";
    return await load(world, args, cwd, `${program} with pid ${pid}, by its command line and files${why(agent)}`);
  }
  if (world.isChosen) {
    const flags = [`--root-dir=${dirname(world.socket)}`];
    return await load(world, flags, world.cwd, `an agent started with ${flags[0]} alone; none runs`);
  }
  const files = await kubeadmFlags(world);
  if (files.length > 0) return await load(world, files, "/", "the files that kubeadm has made; no agent runs");
  return await load(world, [], world.cwd, "an agent started without any flag; none runs");
}

function why(agent: AgentFacts): string {
  if (agent.state === "older") return ", since it is older than this command";
  if (agent.state !== "silent") return "";
  return agent.isDenied ? ", since it answers root only" : ", since it does not answer";
}

/** The one that is meant: with the root directory that is asked for; else ours before another. */
function agentProcess(processes: readonly ProcessFact[], { socket, isChosen }: ExaminedWorld): ProcessFact | undefined {
  const agents = processes.filter(isAgent);
  const meant = agents.find(({ args }) => resolve("/", rootDirOf(args)) === dirname(socket));
  if (meant !== undefined || isChosen) return meant;
  return agents.find(({ program }) => program === "nodelet") ?? agents[0];
}

async function kubeadmFlags({ machine }: ExaminedWorld): Promise<readonly string[]> {
  if (!(await machine.isThere(kubeadm.config))) return [];
  const flags = [`--config=${kubeadm.config}`];
  if (await machine.isThere(kubeadm.kubeconfig)) flags.push(`--kubeconfig=${kubeadm.kubeconfig}`);
  if (await machine.isThere(kubeadm.bootstrap)) flags.push(`--bootstrap-kubeconfig=${kubeadm.bootstrap}`);
  return flags;
}

/** The configuration can't be read, or an agent would refuse it. */
export class ConfigRefused extends Error {
  override readonly name = "ConfigRefused";
}

async function load(
  world: ExaminedWorld,
  flags: readonly string[],
  cwd: string,
  subject: string,
): Promise<ConfigFacts> {
  const denied: string[] = [];
  const result = await loadConfig(flags, boundedIo(world, cwd, denied));
  if (result.kind === "config") return { report: configReport(result.config), subject, drift: undefined };
  if (result.kind !== "invalid") throw new ConfigRefused(`--${result.kind} is no configuration`);
  // What somebody else than root may not read says nothing about what is in it.
  if (denied.length > 0) throw new Error(`${denied.join(", ")}: not for you to read; try again with sudo`);
  const problems = result.problems.map(describeConfigProblem).join("; ");
  throw new ConfigRefused(`the configuration of ${subject} is refused: ${result.step}${problems}`);
}

/** Notes the files that may not be read. */
function boundedIo({ files }: ExaminedWorld, cwd: string, denied: string[]): ConfigIo {
  const readFile = async (path: string): Promise<Buffer> => {
    try {
      return Buffer.from(await files.text(path, longestConfigFile + 1));
    } catch (error) {
      if (hasCode(error, "EACCES", "EPERM")) denied.push(path);
      throw error;
    }
  };
  return { ...systemIo(cwd), readFile };
}

/** The files of the configuration that is examined. */
export async function gatherConfigFiles(world: ExaminedWorld, need: NeedFact): Promise<ConfigFiles> {
  const config = await need("config");
  const named = (name: string): string => {
    const path = settingText(config, name);
    return path === "" ? "" : resolve(world.cwd, path);
  };
  const clientCa = named("authentication.x509.clientCAFile");
  return {
    config: await factsOf(world, [named("--config"), ...(await dropIns(world, named("--config-dir")))]),
    kubeconfig: await factsOf(
      world,
      await kubeconfigFiles(world, named("--kubeconfig"), named("--bootstrap-kubeconfig")),
    ),
    clientCa: clientCa === "" ? undefined : await world.files.fact(clientCa),
  };
}

async function dropIns(world: ExaminedWorld, directory: string): Promise<readonly string[]> {
  if (directory === "") return [];
  const found = await findDropIns(directory, systemIo(world.cwd));
  return found === "symlink" ? [] : found;
}

/** Those that hold a key are as private as the kubeconfig that names them. */
async function kubeconfigFiles(
  world: ExaminedWorld,
  kubeconfig: string,
  bootstrap: string,
): Promise<readonly string[]> {
  if (kubeconfig === "") return [];
  const named = (await clientFilesOf(world, kubeconfig).catch(() => undefined)) ?? [];
  const withKeys: string[] = [];
  for (const path of named) {
    const content = await world.files.textIfThere(path).catch(() => "");
    if (content?.includes("PRIVATE KEY") === true) withKeys.push(path);
  }
  return [kubeconfig, bootstrap, ...withKeys];
}

async function factsOf({ files }: ExaminedWorld, paths: readonly string[]): Promise<readonly FileFact[]> {
  const facts: FileFact[] = [];
  for (const path of new Set(paths.filter((each) => each !== ""))) facts.push(await files.fact(path));
  return facts;
}
