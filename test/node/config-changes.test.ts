// Configurations that change while the agent runs: taken over, tried, and taken back by itself when they do harm. No
// container notices, and the process stays the same.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { RolloutAnswer } from "../../src/beside/cli/config-trial-text.ts";
import { eventually } from "../support/agent.ts";
import { statusOf, TestNode } from "../support/test-node.ts";

const run = promisify(execFile);
const trialSeconds = 10;
const waitMs = 60_000;

let node: TestNode;
before(async () => {
  const follow = ({ rootDir }: { readonly rootDir: string }) => [
    `--dynamic-config-dir=${join(rootDir, "dynamic")}`,
    `--dynamic-config-trial=${trialSeconds}s`,
  ];
  node = await TestNode.start({}, undefined, follow);
});
after(() => node?.[Symbol.asyncDispose]());

const report = (): Promise<RolloutAnswer> => node.agent.client.rollout(AbortSignal.timeout(waitMs));

const reported = (what: string, condition: (report: RolloutAnswer) => boolean): Promise<RolloutAnswer> =>
  eventually(
    async () => {
      const seen = await report();
      return condition(seen) && seen;
    },
    what,
    waitMs,
  );

const isSettled = ({ trial, good, active, missing }: RolloutAnswer): boolean =>
  trial === undefined && missing === undefined && good?.version === active.version;

async function running(): Promise<string> {
  const pod = await node.agent.until(
    "witness",
    "running",
    (seen) => statusOf(seen, "main").state?.running !== undefined,
  );
  const { containerID, restartCount, state } = statusOf(pod, "main");
  return `${containerID} ${restartCount} ${state?.running?.startedAt}`;
}

async function nodelet(...words: string[]): Promise<string> {
  return (await run("bin/nodelet", ["config", ...words, `--root-dir=${node.agent.rootDir}`])).stdout;
}

/** The configuration in use. */
async function configz(): Promise<string> {
  const options = { socketPath: join(node.agent.rootDir, "nodelet.sock"), path: "/configz" };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(options, resolve).on("error", reject);
  });
  return await text(response);
}

const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

test("changes are taken over in the same process, and what does harm is taken back", async () => {
  const { agent } = node;
  await agent.apply("witness", { containers: [node.shell("main", "sleep 100000")] });
  const witness = await running();
  const { pid } = agent;
  const first = await reported("the first one is good", isSettled);

  await agent.configure({ maxPods: 77 });
  await reported("another one is tried", ({ active, missing }) => active.version !== first.active.version && !missing);
  await nodelet("keep");
  const second = await reported("it is kept before its time is over", isSettled);
  const filesBefore = openFiles(pid);
  assert.equal(agent.pid, pid);
  assert.equal(agent.end, undefined);
  assert.equal(await running(), witness);

  await using taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  for (const { name, config, why } of [
    { name: "a port in use", config: { port }, why: /EADDRINUSE/ },
    {
      name: "TLS files that are missing",
      config: { tlsCertFile: "/nowhere/a.crt", tlsPrivateKeyFile: "/nowhere/a.key" },
      why: /nowhere/,
    },
    {
      name: "a runtime that is not there",
      config: { containerRuntimeEndpoint: "unix:///run/nowhere.sock" },
      why: /runtime: /,
    },
  ]) {
    await agent.configure(config);
    const back = await reported(
      `${name} is taken back`,
      ({ error, active }) => why.test(error) && active.version === second.active.version,
    );
    assert.match(back.error, /^rolled back: /, name);
    await reported("the agent works", ({ missing }) => missing === undefined);
    assert.equal(await running(), witness, name);
    assert.equal(agent.end, undefined, name);
  }
  assert.ok(openFiles(pid) <= filesBefore + 3, `${openFiles(pid)} files are open, ${filesBefore} were`);

  // The files still say what does harm: another process begins with what is known to be good.
  await agent.kill9();
  await agent.launch();
  const again = await reported("the agent works after a crash", ({ missing }) => missing === undefined);
  assert.equal(again.active.version, second.active.version);
  assert.notEqual(again.error, "");
  assert.equal(await running(), witness);

  await agent.configure({ maxPods: 78, logging: { verbosity: 3 } });
  await reported("a good one is taken over after all", ({ error, missing, active }) => {
    return error === "" && missing === undefined && active.version !== second.active.version;
  });
  assert.equal(await running(), witness);
});

test("a file is compared, tried and goes back; another one is kept", async () => {
  const { agent } = node;
  const before = await reported("the agent works", ({ missing }) => missing === undefined);
  const witness = await running();
  const file = join(agent.rootDir, "trial.json");
  const { kubeletconfig } = JSON.parse(await configz());
  const variant = (changes: object): string =>
    JSON.stringify({
      ...kubeletconfig,
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      ...changes,
    });
  await writeFile(file, variant({ maxPods: 55, imageGCHighThresholdPercent: 99, cgroupRoot: "/elsewhere" }));
  const differences = await nodelet("diff", file);
  assert.match(differences, /maxPods: 78 -> 55\n {4}with a restart of the agent, which no container notices/);
  assert.match(differences, /imageGCHighThresholdPercent: 100 -> 99\n {4}takes effect at once/);
  assert.match(differences, /cgroupRoot: .*\n {4}not while the agent runs: containers that run/);
  await assert.rejects(nodelet("try", file), /cgroupRoot/);

  await writeFile(file, variant({ maxPods: 55 }));
  assert.match(await nodelet("try", file, "--for", "8s"), /It goes back in \d+ s/);
  await reported(
    "it went back by itself",
    ({ active, trial }) => active.version === before.active.version && trial?.mustBeKept !== true,
  );
  assert.match(await nodelet("history"), /rolled back .*nobody said/);

  assert.match(await nodelet("try", file, "--for", "60s"), /It goes back in \d+ s/);
  await nodelet("keep");
  const kept = await report();
  await agent.kill9();
  await agent.launch();
  assert.equal((await report()).active.version, kept.active.version, "over a restart");
  assert.equal(await running(), witness);
});
