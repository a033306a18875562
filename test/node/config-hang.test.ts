// Configurations with which the agent waits for ever for a file system that never answers: they are taken back by
// themselves, and no container notices. Threads that wait there do not keep the process.
import assert from "node:assert/strict";
import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { RolloutAnswer } from "../../src/beside/cli/config-trial-text.ts";
import { eventually } from "../support/agent.ts";
import { HungMount } from "../support/hung-mount.ts";
import { statusOf, TestNode } from "../support/test-node.ts";

// The agent has a minute to end before it is given up.
const waitMs = 240_000;

let node: TestNode;
before(async () => {
  node = await TestNode.start({}, undefined, ({ rootDir }) => [
    `--dynamic-config-dir=${join(rootDir, "dynamic")}`,
    "--dynamic-config-trial=10s",
  ]);
});
after(() => node?.[Symbol.asyncDispose]());

/** Looks at a supervised agent: it is started again whenever it ends. */
function reported(what: string, condition: (report: RolloutAnswer) => boolean): Promise<RolloutAnswer> {
  const { agent } = node;
  return eventually(
    async () => {
      if (agent.end !== undefined) await agent.begin();
      const seen = await agent.client.rollout(AbortSignal.timeout(10_000)).catch(() => undefined);
      return seen !== undefined && condition(seen) && seen;
    },
    what,
    waitMs,
  );
}

async function running(): Promise<string> {
  const isRunning = (pod: Parameters<typeof statusOf>[0]) => statusOf(pod, "main").state?.running !== undefined;
  const { containerID, restartCount } = statusOf(await node.agent.until("witness", "running", isRunning), "main");
  return `${containerID} ${restartCount}`;
}

for (const { name, config, begins, why } of [
  {
    name: "TLS files, changed while the agent runs",
    config: (path: string) => ({ tlsCertFile: join(path, "a.crt"), tlsPrivateKeyFile: join(path, "a.key") }),
    begins: "while running",
    why: /^rolled back: node-api: it is being opened/,
  },
  {
    name: "the directory of logs, which an agent makes before it answers anybody",
    config: (path: string) => ({ podLogsDir: join(path, "logs") }),
    begins: "with a process",
    why: /^rolled back: .*the agent has not started, it is at "directories"/,
  },
]) {
  test(`${name}: on a file system that never answers`, async () => {
    const { agent } = node;
    await agent.apply("witness", { containers: [node.server("main")] });
    const witness = await running();
    const isSettled = ({ trial, missing }: RolloutAnswer): boolean => trial === undefined && missing === undefined;
    await agent.configure({});
    const good = await reported("the configuration is good", (report) => isSettled(report) && report.error === "");
    const place = await mkdtemp(join(tmpdir(), "nodelet-hung-"));
    await using hung = await HungMount.at(place);
    if (begins === "with a process") await agent.stop();
    await agent.configure(config(hung.path));
    if (begins === "with a process") await agent.begin();
    const back = await reported("it is taken back", ({ error, active, missing }) => {
      return error !== "" && missing === undefined && active.version === good.active.version;
    });
    assert.match(back.error, why);
    assert.equal(await running(), witness);
    await hung[Symbol.asyncDispose]();
    await rmdir(place);
  });
}
