// `nodelet doctor` as people type it, against a real agent on the simulated runtime.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { DoctorReport } from "../../src/beside/doctor/index.ts";
import { DaemonHome, nodelet } from "../support/daemon.ts";
import { serveFakeRuntime } from "../support/served-runtime.ts";
import { until } from "../support/until.ts";

interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function doctor(home: DaemonHome, ...words: readonly string[]): Promise<Answer> {
  const child = spawn(nodelet, ["doctor", `--root-dir=${home.rootDir}`, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code, stdout, stderr };
}

async function report(
  home: DaemonHome,
  ...words: readonly string[]
): Promise<DoctorReport & { readonly code: number | null }> {
  const { code, stdout, stderr } = await doctor(home, "--json", ...words);
  assert.equal(stderr, "");
  return { ...(JSON.parse(stdout) as DoctorReport), code };
}

/** A busy machine may take more than the second that the agent has for an answer: then the question is asked again. */
async function reportOfRunning(home: DaemonHome, ...words: readonly string[]) {
  let answer = await report(home, ...words);
  await until("the agent answered in time", async () => {
    if (answer.agent.state === "running") return true;
    answer = await report(home, ...words);
    return false;
  });
  return answer;
}

const found = ({ findings }: DoctorReport, id: string) => findings.find((finding) => finding.id === id);

test("an agent that runs, one whose files have changed, one that hangs, none", async () => {
  await using home = await DaemonHome.create();
  await using _runtime = await serveFakeRuntime(home.runtimeSocket);
  chmodSync(home.configFile, 0o644);
  const agent = home.start({ env: { NODELET_HOST_SETTINGS: "leave" } });
  await agent.until("it had started", () => agent.stderr.includes('"Started nodelet"'));

  const running = await reportOfRunning(home);
  assert.equal(running.agent.state, "running");
  assert.equal(running.code, 1);
  assert.match(running.subject, new RegExp(`^the running agent, nodelet .*, pid ${agent.pid}$`));
  const anonymous = found(running, "4.2.1");
  assert.equal(anonymous?.state, "fail");
  assert.equal(anonymous?.from, `file ${home.configFile}:1`);
  assert.deepEqual(found(running, "4.1.9")?.fix, `chmod 600 ${home.configFile}`);
  for (const id of [
    "agent.answers",
    "runtime.answers",
    "config.valid",
    "config.drift",
    "network.ports",
    "4.2.4",
    "4.2.6",
  ]) {
    assert.equal(found(running, id)?.state, id === "4.2.6" ? "warn" : "pass", JSON.stringify(found(running, id)));
  }
  // What the agent serves by default: the handshake proves it.
  assert.equal(found(running, "4.2.12")?.state, "fail");

  chmodSync(home.configFile, 0o600);
  home.configure({ podPidsLimit: 77 });
  const changed = await reportOfRunning(home, "--only", "config.drift,4.1.9,4.2.13");
  assert.match(found(changed, "config.drift")?.seen ?? "", /podPidsLimit runs as -1, files say 77/);
  assert.equal(found(changed, "4.1.9")?.state, "pass");
  assert.equal(found(changed, "4.2.13")?.state, "fail", "what runs counts, not what the files say");

  const people = await doctor(home, "--only", "4.2.1");
  assert.match(people.stdout, /^Examined: .*\n\nFAIL {4}4\.2\.1 /);
  assert.equal((await reportOfRunning(home, "--only", "agent.answers")).code, 0);
  const misspelt = await doctor(home, "--only", "cfs");
  assert.equal(misspelt.code, 2);
  assert.match(misspelt.stderr, /^nodelet doctor: there is no topic, group or check "cfs"/);
  const slip = await doctor(home, "--onyl=cis");
  assert.equal(slip.code, 2);
  assert.match(slip.stderr, /^nodelet doctor: unknown flag: --onyl; did you mean --only\?/);

  agent.signal("SIGSTOP");
  const hung = await report(home, "--only", "agent,ground.kernel");
  agent.signal("SIGCONT");
  assert.equal(hung.agent.state, "silent");
  assert.equal(found(hung, "agent.answers")?.state, "fail");
  assert.equal(found(hung, "ground.kernel")?.state, "pass");

  agent.signal("SIGTERM");
  await agent.exited;
  const gone = await report(home, "--only", "agent", "--config", home.configFile);
  assert.equal(gone.agent.state, "absent");
  assert.equal(gone.code, 0);
});
