import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ContainerLogWriter } from "../../../../test/support/log-writer.ts";
import { FakeViews, TestServer } from "../../../../test/support/node-api.ts";
import { ContainerStatusResponse, CriError } from "../../../connections/cri/index.ts";
import { systemClock } from "../../../ground/base/index.ts";
import type { ContainerState, Pod } from "../../../ground/model/index.ts";
import { containerLogsService } from "./container-logs.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-clogs-"));
after(() => rmSync(directory, { recursive: true, force: true }));

let count = 0;
const newWriter = (): ContainerLogWriter => new ContainerLogWriter(join(directory, String(count++), "0.log"));

function pod(state: ContainerState, lastState: ContainerState = {}, containerID = "containerd://now"): Pod {
  return {
    metadata: { name: "web", namespace: "shop", uid: "uid-web" },
    spec: { containers: [{ name: "main" }, { name: "unseen" }] },
    status: {
      containerStatuses: [
        { name: "main", image: "i", imageID: "i", ready: true, restartCount: 0, containerID, state, lastState },
      ],
    },
  };
}

const running = pod({ running: { startedAt: "2026-01-01T00:00:00Z" } });

async function serve(views: FakeViews, logs: Readonly<Record<string, string>>, splitStreams = false) {
  return await TestServer.start([
    containerLogsService({
      views,
      runtimeViews: { latest: () => undefined },
      runtime: {
        containerStatus: async ({ containerId }) => {
          const logPath = logs[containerId];
          if (logPath === undefined) throw new CriError("NotFound", "containerStatus", "gone");
          return ContainerStatusResponse.fromPartial({ status: { logPath } });
        },
      },
      clock: systemClock,
      splitStreams,
    }),
  ]);
}

for (const [what, shown, query, status, text] of [
  ["running", running, "", 200, "now\n"],
  ["terminated", pod({ terminated: { exitCode: 0, containerID: "containerd://now" } }), "", 200, "now\n"],
  [
    "terminated without an id",
    pod({ terminated: { exitCode: 0 } }, { terminated: { exitCode: 1, containerID: "containerd://before" } }),
    "",
    200,
    "before\n",
  ],
  [
    "terminated, nothing left",
    pod({ terminated: { exitCode: 0 } }),
    "",
    400,
    'container "main" in pod "web" is terminated',
  ],
  [
    "waiting after a crash",
    pod(
      { waiting: { reason: "CrashLoopBackOff" } },
      { terminated: { exitCode: 1, containerID: "containerd://before" } },
    ),
    "",
    200,
    "before\n",
  ],
  [
    "previous",
    pod({ running: {} }, { terminated: { exitCode: 1, containerID: "containerd://before" } }),
    "previous=true",
    200,
    "before\n",
  ],
  ["no previous", running, "previous=true", 400, 'previous terminated container "main" in pod "web" not found'],
  [
    "image can't be pulled",
    pod({ waiting: { reason: "ErrImagePull" } }),
    "",
    400,
    'container "main" in pod "web" is waiting to start: image can\'t be pulled',
  ],
  [
    "image back-off",
    pod({ waiting: { reason: "ImagePullBackOff" } }),
    "",
    400,
    'container "main" in pod "web" is waiting to start: trying and failing to pull image',
  ],
  [
    "creating",
    pod({ waiting: { reason: "ContainerCreating" } }),
    "",
    400,
    'container "main" in pod "web" is waiting to start: ContainerCreating',
  ],
  ["no reason", pod({}), "", 400, 'container "main" in pod "web" is waiting to start - no logs yet'],
  [
    "unknown to the runtime",
    pod({ running: {} }, {}, "containerd://gone"),
    "",
    400,
    "unable to retrieve container logs for containerd://gone",
  ],
  ["legacy tail", running, "tail=0", 200, ""],
  ["legacy tail of all", running, "tail=all", 200, "now\n"],
  ["timestamps", running, "timestamps=true&limitBytes=20", 200, "2026-01-02T03:04:05."],
  ["a flag without value is set", running, "timestamps&limitBytes=4", 200, "2026"],
  ["a flag of 0 is not", running, "timestamps=0", 200, "now\n"],
  ["a bad number", running, "tailLines=x", 400, '{"message": "Unable to decode query."}'],
  ["a bad time", running, "sinceTime=yesterday", 400, '{"message": "Unable to decode query."}'],
  ["a negative tail", running, "tailLines=-1", 422, '{"message": "Invalid request."}'],
  ["no bytes", running, "limitBytes=0", 422, '{"message": "Invalid request."}'],
  ["no seconds", running, "sinceSeconds=0", 422, '{"message": "Invalid request."}'],
  ["two times", running, "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, '{"message": "Invalid request."}'],
  ["an unknown stream", running, "stream=Both", 422, '{"message": "Invalid request."}'],
  ["a stream with tail", running, "stream=Stdout&tailLines=1", 422, '{"message": "Invalid request."}'],
  [
    "a stream without the gate",
    running,
    "stream=Stdout",
    400,
    'unable to return the given log stream: "Stdout". Please enable PodLogsQuerySplitStreams feature gate in kubelet',
  ],
  ["all streams", running, "stream=All", 200, "now\n"],
  ["since long ago", running, "sinceTime=2020-01-01T00:00:00Z", 200, "now\n"],
  ["since just now", running, "sinceTime=2100-01-01T00:00:00Z", 200, ""],
] as const) {
  test(`logs: ${what} (${query}) gives ${status}`, async () => {
    const [now, before] = [newWriter(), newWriter()];
    now.say(Buffer.from("now"));
    before.say(Buffer.from("before"));
    await using server = await serve(new FakeViews(shown), { now: now.path, before: before.path });
    const answer = await server.ask(`/containerLogs/shop/web/main?${query}`);
    assert.deepEqual([answer.status, answer.text], [status, text]);
    if (status === 200) assert.equal(answer.headers["transfer-encoding"], "chunked");
  });
}

for (const [path, text] of [
  ["/containerLogs/shop/gone/main", 'pod "gone" does not exist'],
  ["/containerLogs/shop/web/other", 'container "other" not found in pod "web"'],
  ["/containerLogs/shop/web/..%2e", 'container "..." not found in pod "web"'],
] as const) {
  test(`logs: ${path} is a 404`, async () => {
    await using server = await serve(new FakeViews(running), {});
    const answer = await server.ask(path);
    assert.deepEqual([answer.status, answer.text], [404, text]);
  });
}

test("logs: a container of the spec without status is not available", async () => {
  await using server = await serve(new FakeViews(running), {});
  const answer = await server.ask("/containerLogs/shop/web/unseen");
  assert.deepEqual([answer.status, answer.text], [400, 'container "unseen" in pod "web" is not available']);
});

test("logs: one stream, with the gate", async () => {
  const writer = newWriter();
  writer.say(Buffer.from("out"));
  writer.say(Buffer.from("err"), "stderr");
  await using server = await serve(new FakeViews(running), { now: writer.path }, true);
  assert.equal((await server.ask("/containerLogs/shop/web/main?stream=Stderr")).text, "err\n");
});

test("logs: follow sends headers at once, lines as they come, and ends with the container", async () => {
  const writer = newWriter();
  const views = new FakeViews(running);
  await using server = await serve(views, { now: writer.path });
  const sent = request({
    host: "127.0.0.1",
    port: server.port,
    path: "/containerLogs/shop/web/main?follow=true",
    agent: false,
  });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  const lines = response.setEncoding("utf8")[Symbol.asyncIterator]();
  for (const text of ["one", "two"]) {
    writer.say(Buffer.from(text));
    assert.equal((await lines.next()).value, `${text}\n`);
  }
  writer.say(Buffer.from("last"));
  views.set(pod({ terminated: { exitCode: 0, containerID: "containerd://now" } }));
  assert.equal((await lines.next()).value, "last\n");
  assert.equal((await lines.next()).done, true);
  assert.equal(views.listeners, 0);
});

test("logs: a follower that leaves leaves nothing behind", async () => {
  const writer = newWriter();
  const views = new FakeViews(running);
  await using server = await serve(views, { now: writer.path });
  const sent = request({
    host: "127.0.0.1",
    port: server.port,
    path: "/containerLogs/shop/web/main?follow=1",
    agent: false,
  });
  sent.end();
  await once(sent, "response");
  assert.equal(views.listeners, 1);
  sent.destroy();
  while (views.listeners > 0) await systemClock.sleep(5, new AbortController().signal);
});
