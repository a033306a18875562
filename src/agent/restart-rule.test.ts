// A pod that runs is never refused: not after a restart of the agent, a reboot, a change of its policies or the loss of
// what it had noted (kubernetes#105523, #123971, #129078).
import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sized } from "../../test/support/pinned-pods.ts";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import type { PodSpec } from "../ground/model/index.ts";

const reservedCpus = 'kubeReserved: {cpu: "1500m", memory: "500Mi"}\nsystemReserved: {memory: "424Mi"}\n';
const reservedMemory = "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n";
const policies = {
  none: reservedCpus,
  static: `${reservedCpus}cpuManagerPolicy: static\n`,
  "whole cores": `${reservedCpus}cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n`,
  spread: `${reservedCpus}cpuManagerPolicy: static\ncpuManagerPolicyOptions: {distribute-cpus-across-numa: 'true'}\n`,
  strict: `${reservedCpus}cpuManagerPolicy: static\ncpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n`,
  everything: `${reservedCpus}${reservedMemory}cpuManagerPolicy: static\nmemoryManagerPolicy: Static\n`,
} as const;
type Policy = keyof typeof policies;

const whole = (text: string): Partial<PodSpec> => ({ containers: [sized("main", text)] });
const afterInit: Partial<PodSpec> = {
  initContainers: [sized("init", "4 1Gi", { command: ["sh", "-c", "exit 0"] })],
  containers: [sized("main", "4 1Gi")],
};
/** All 14 CPUs that can be given, so that nobody could have them twice. */
const pods: Readonly<Record<string, Partial<PodSpec>>> = {
  large: whole("8 2Gi"),
  small: whole("2 1Gi"),
  initialised: afterInit,
  shares: {},
};
const names = ["initialised/main", "large/main", "shares/main", "small/main"];

async function begin(policy: Policy, alignment: string, after?: WholeAgent): Promise<WholeAgent> {
  const config = `${policies[policy]}topologyManagerPolicy: ${alignment}\n`;
  const agent = await WholeAgent.start({ config, ...(after === undefined ? {} : { after }) });
  mkdirSync(join(agent.directory, "root"), { recursive: true });
  return agent;
}

const idsOf = (agent: WholeAgent): readonly string[] =>
  agent.runtime
    .containers()
    .filter(({ life }) => life.step === "running")
    .map(({ id }) => id)
    .sort();

async function filled(policy: Policy, alignment: string): Promise<WholeAgent> {
  const agent = await begin(policy, alignment);
  for (const [name, spec] of Object.entries(pods)) {
    agent.create(name, spec);
    await agent.until(`${name} runs`, () => agent.running().includes(`${name}/main`));
  }
  return agent;
}

async function assertNobodyRefused(agent: WholeAgent): Promise<void> {
  await agent.advance(60_000);
  assert.deepEqual(agent.running(), names);
  for (const name of Object.keys(pods)) {
    const { phase, reason, message } = agent.pod(name)?.status ?? {};
    assert.deepEqual([name, phase, reason, message], [name, "Running", undefined, undefined]);
  }
}

/** [first policy and alignment, those after the restart, what else happens in between] */
const lives: readonly (readonly [Policy, string, Policy, string, string?])[] = [
  ["whole cores", "restricted", "whole cores", "restricted"],
  ["spread", "best-effort", "spread", "best-effort"],
  ["strict", "restricted", "strict", "restricted"],
  ["everything", "restricted", "everything", "restricted"],
  ["everything", "none", "everything", "single-numa-node"],
  ["none", "none", "whole cores", "single-numa-node"],
  ["static", "none", "whole cores", "restricted"],
  ["everything", "restricted", "everything", "restricted", "its notes are lost"],
];
for (const [policy, alignment, nextPolicy, nextAlignment, event = ""] of lives) {
  const title = `${policy} with ${alignment}, then ${nextPolicy} with ${nextAlignment}${event === "" ? "" : `; ${event}`}`;
  test(`a restart: ${title}`, async () => {
    const first = await filled(policy, alignment);
    const ids = idsOf(first);
    await first.stop();
    if (event !== "") {
      for (const file of ["cpu_manager_state", "memory_manager_state"]) rmSync(join(first.directory, "root", file));
    }
    await using second = await begin(nextPolicy, nextAlignment, first);
    await assertNobodyRefused(second);
    assert.deepEqual(idsOf(second), ids, "no container was touched");
  });
}

for (const [policy, alignment] of [
  ["whole cores", "restricted"],
  ["everything", "restricted"],
] as const) {
  test(`a reboot: ${policy} with ${alignment}`, async () => {
    const first = await filled(policy, alignment);
    await first.stop();
    first.runtime.restart("records");
    await using second = await begin(policy, alignment, first);
    await second.until("all run again", () => second.running().length === names.length);
    await assertNobodyRefused(second);
  });
}
