import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually, TestAgent } from "../support/agent.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";

const maxFiles = 3;
const lines = 12_000;
/** About 1.5 MB in ten seconds, which is several times what one file may hold. */
const talk = `pad=$(head -c 100 /dev/zero | tr "\\0" x); i=0; while [ $i -lt ${lines} ]; do
  echo "$i $pad"; i=$((i+1)); [ $((i % 120)) -ne 0 ] || sleep 0.1; done`;

describe("logs of real containers", { timeout: 200_000 }, () => {
  let containerd: TestContainerd;
  let agent: TestAgent;
  let port: number;

  before(async () => {
    containerd = await startContainerd();
    port = await freePort();
    agent = await TestAgent.start(containerd, {
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: "AlwaysAllow" },
      containerLogMaxSize: "200Ki",
      containerLogMaxFiles: maxFiles,
      containerLogMonitorInterval: "3s",
      port,
    });
  });
  after(async () => {
    await agent?.[Symbol.asyncDispose]();
    await containerd?.[Symbol.asyncDispose]();
  });

  async function ask(pod: string, query: string): Promise<{ status: number; text: string }> {
    const path = `/containerLogs/default/${pod}-test-node/main${query}`;
    const sent = request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() };
  }

  const start = (name: string, script: string, restartPolicy: "Never" | "Always") =>
    agent.apply(name, {
      restartPolicy,
      terminationGracePeriodSeconds: 0,
      volumes: [{ name: "kept", emptyDir: {} }],
      containers: [
        {
          name: "main",
          image: containerd.images.busybox,
          command: ["sh", "-c", script],
          volumeMounts: [{ name: "kept", mountPath: "/kept" }],
        },
      ],
    });

  const numbersOf = (text: string): readonly number[] =>
    text.split("\n").flatMap((line) => (line === "" ? [] : [Number.parseInt(line, 10)]));

  test("followers lose and double nothing while the log is rotated; old files are compressed and limited", async () => {
    await start("talker", talk, "Never");
    await agent.until("talker", "it runs", ({ status }) => status?.phase === "Running");
    const answers = await Promise.all([ask("talker", "?follow=true"), ask("talker", "?follow=true&timestamps=true")]);
    for (const { status } of answers) assert.equal(status, 200);
    const wanted = Array.from({ length: lines }, (_, index) => index);
    assert.deepEqual(numbersOf(answers[0]?.text ?? ""), wanted);
    const timed = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(Z|[+-]\d\d:\d\d) /;
    const stamped = (answers[1]?.text ?? "").split("\n").filter((line) => line !== "");
    assert.ok(stamped.every((line) => timed.test(line)));
    assert.deepEqual(numbersOf(stamped.map((line) => line.replace(timed, "")).join("\n")), wanted);

    const logs = containerd.layout.podLogsDir;
    const directory = readdirSync(logs).find((name) => name.startsWith("default_talker-test-node_")) ?? "";
    // The last line may have come in the middle of a rotation, while the live file has no name.
    const kept = /^0\.log,0\.log\.\d{8}-\d{6}\.gz,0\.log\.\d{8}-\d{6}$/;
    const look = async (): Promise<true> => {
      const files = readdirSync(join(logs, directory, "main")).toSorted();
      assert.equal(files.length, maxFiles, files.join());
      assert.match(files.join(), kept);
      return true;
    };
    await eventually(look, "a live, a compressed and a plain file", 60_000);
  });

  test("tail, limit and since reach into the files that were set aside", async () => {
    const all = numbersOf((await ask("talker", "")).text);
    assert.deepEqual(
      all,
      Array.from({ length: all.length }, (_, index) => lines - all.length + index),
    );
    for (const count of [0, 1, 5, 2_500, all.length, all.length + 1]) {
      const { text } = await ask("talker", `?tailLines=${count}`);
      assert.deepEqual(numbersOf(text), count === 0 ? [] : all.slice(-count), `the last ${count}`);
    }
    const { text: limited } = await ask("talker", "?limitBytes=7");
    assert.equal(limited, `${all[0]} xxxxxxx`.slice(0, 7));
    assert.equal((await ask("talker", "?sinceSeconds=86400&tailLines=3")).text.split("\n").length, 4);
    assert.equal((await ask("talker", "?sinceTime=2100-01-01T00:00:00Z")).text, "");
  });

  test("the log of the instance before, and none before the first", async () => {
    const script = "if [ -e /kept/it ]; then echo second; sleep 1d; fi; touch /kept/it; echo first; exit 1";
    await start("crasher", script, "Always");
    await agent.until("crasher", "its second instance runs", ({ status }) => {
      const { restartCount = 0, state } = status?.containerStatuses?.[0] ?? {};
      return restartCount === 1 && state?.running !== undefined;
    });
    assert.deepEqual(await ask("crasher", "?previous=true"), { status: 200, text: "first\n" });
    await eventually(async () => (await ask("crasher", "")).text === "second\n", "its own log", 60_000);
    const missing = await ask("talker", "?previous=true");
    const complaint = 'previous terminated container "main" in pod "talker-test-node" not found';
    assert.deepEqual([missing.status, missing.text], [400, complaint]);
  });
});
