import { type Clock, cutText, messageOf } from "../../ground/base/index.ts";
import type { Check, Judgement } from "./check.ts";
import { type Facts, NotKnown } from "./facts.ts";
import { type AgentPresence, countStates, type DoctorFinding, type DoctorReport } from "./finding.ts";
import { examineAgent } from "./gather/agent.ts";
import { gatherApi } from "./gather/api.ts";
import { gatherCertificates } from "./gather/certificates.ts";
import { gatherConfig, gatherConfigFiles } from "./gather/config.ts";
import { gatherDisk } from "./gather/disk.ts";
import { HostFiles } from "./gather/files.ts";
import { gatherGround } from "./gather/ground.ts";
import { gatherKernel } from "./gather/kernel.ts";
import { gatherKernelLog } from "./gather/kernel-log.ts";
import { gatherKubeProxy } from "./gather/kube-proxy.ts";
import { gatherNetwork } from "./gather/network.ts";
import { patienceOn } from "./gather/patience.ts";
import { gatherPods } from "./gather/pods.ts";
import { findProcesses } from "./gather/processes.ts";
import { gatherRuntime } from "./gather/runtime.ts";
import { gatherSameMachines } from "./gather/same-machines.ts";
import { gatherServing } from "./gather/serving.ts";
import { gatherTime } from "./gather/time.ts";
import { gatherUnit } from "./gather/unit.ts";
import { type Gatherers, gather } from "./gathering.ts";
import { type CheckGroup, checkGroups, isMeant } from "./groups.ts";
import type { publishConditions } from "./publish-conditions.ts";
import type { ExaminedWorld } from "./world.ts";

export interface Examination {
  readonly clock: Clock;
  /** The local socket of the agent: `<root-dir>/nodelet.sock`. */
  readonly socket: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly uid: number;
  /** Flags of an agent whose configuration is examined, instead of that of the one that runs. */
  readonly flags?: readonly string[];
  /** The socket was named: the agent there is meant, and no other. */
  readonly isChosen?: boolean;
  /** Topics, groups or ids; none: all. */
  readonly only?: readonly string[];
  readonly skip?: readonly string[];
  /** The conditions of the Node are to say what was found. */
  readonly publishes?: boolean;
  /** Where the machine begins; tests have one of their own. */
  readonly root?: string;
  readonly withinMs?: number;
}

/** All has to be over in two seconds, unless the machine is busy; what is left is for the start of the process and the report. */
const withinMs = 1_600;

/**
 * Looks at the node and says what it found. Changes nothing, but for the Node's conditions where that is asked for, and
 * never waits longer than it says.
 */
export async function examine(examination: Examination, signal: AbortSignal): Promise<DoctorReport> {
  const { clock, only = [], skip = [], root = "" } = examination;
  const startedAt = clock.now();
  const began = clock.monotonic();
  const chosen = checkGroups
    .map((group) => ({
      ...group,
      checks: group.checks.filter(
        (check) =>
          (only.length === 0 || only.some((word) => isMeant(word, group, check))) &&
          !skip.some((word) => isMeant(word, group, check)),
      ),
    }))
    .filter(({ checks }) => checks.length > 0);
  const machine = new HostFiles(root);
  const patience = await patienceOn(machine);
  const world: ExaminedWorld = {
    root: root === "" ? "/" : root,
    machine,
    patience,
    files: new HostFiles(),
    clock,
    cwd: examination.cwd,
    env: examination.env,
    uid: examination.uid,
    flags: examination.flags ?? [],
    socket: examination.socket,
    isChosen: examination.isChosen ?? false,
  };
  const names = new Set(["agent" as const, "config" as const, ...chosen.flatMap(({ needs }) => needs)]);
  const bound = { clock, withinMs: examination.withinMs ?? withinMs * patience };
  const facts = await gather(gatherersOf(world), names, bound, signal);
  const findings = chosen.flatMap((group) => group.checks.map((check) => findingOf(group, check, facts)));
  const tookMs = Math.round(clock.monotonic() - began);
  const conditions = examination.publishes ? await publish(world, facts, findings, signal) : undefined;
  return {
    apiVersion: "nodelet.dev/v1",
    kind: "DoctorReport",
    node: "value" in facts.config ? facts.config.value.report.nodeName : "",
    at: new Date(startedAt).toISOString(),
    tookMs,
    subject: plain("value" in facts.config ? facts.config.value.subject : facts.config.missing),
    agent: presenceOf(facts, world.socket),
    summary: countStates(findings),
    findings,
    ...(conditions !== undefined && { nodeConditions: conditions }),
  };
}

/** Few want it. */
async function publish(...what: Parameters<typeof publishConditions>): ReturnType<typeof publishConditions> {
  return await (await import("./publish-conditions.ts")).publishConditions(...what);
}

function gatherersOf(world: ExaminedWorld): Gatherers {
  return {
    agent: (_need, signal) => examineAgent(world, signal),
    config: (need) => gatherConfig(world, need),
    processes: () => findProcesses(world.machine),
    unit: (need) => gatherUnit(world, need),
    configFiles: (need) => gatherConfigFiles(world, need),
    kubeProxy: (need) => gatherKubeProxy(world, need),
    certificates: (need) => gatherCertificates(world, need),
    serving: (need, signal) => gatherServing(need, signal),
    ground: (_need, signal) => gatherGround(world, signal),
    kernel: () => gatherKernel(world),
    network: (need, signal) => gatherNetwork(world, need, signal),
    runtime: (need, signal) => gatherRuntime(world, need, signal),
    disk: (need) => gatherDisk(world, need),
    time: (need) => gatherTime(world, need),
    api: (need, signal) => gatherApi(world, need, signal),
    sameMachines: (need, signal) => gatherSameMachines(world, need, signal),
    pods: (need) => gatherPods(world, need),
    kernelLog: (_need, signal) => gatherKernelLog(world, signal),
  };
}

function presenceOf({ agent }: Facts, socket: string): AgentPresence {
  if ("missing" in agent) return { state: "silent", socket };
  const { value } = agent;
  return { state: value.state, socket, ...(value.state === "running" && { version: value.self.version }) };
}

/** A check that stumbles says so; the others go on. */
function findingOf({ name }: CheckGroup, check: Check, facts: Facts): DoctorFinding {
  const { id, title, why, benchmark } = check;
  const { state, seen, source, fix = "" } = verdictOf(check, facts);
  return {
    id,
    group: name,
    title,
    state,
    seen: plain(seen),
    from: plain(source?.text ?? ""),
    ...(source?.place !== undefined && { place: source.place }),
    why,
    fix: state === "pass" || state === "n/a" ? "" : plain(fix),
    ...(benchmark !== undefined && { benchmark }),
  };
}

const longestText = 2_000;

/** Names and messages come from pods, files and servers: nothing of them may move a cursor or break a form. */
function plain(text: string): string {
  return cutText(text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}]+/gu, " "), longestText);
}

function verdictOf(check: Check, facts: Facts): Judgement {
  try {
    return check.look(facts);
  } catch (error) {
    if (error instanceof NotKnown) return { state: "unknown", seen: error.message };
    return { state: "unknown", seen: `the check itself failed: ${messageOf(error)}` };
  }
}
