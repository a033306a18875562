import assert from "node:assert/strict";
import { test } from "node:test";
import { ServedDashboard } from "../../../test/support/dashboard.ts";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { until } from "../../../test/support/until.ts";
import { untilAborted } from "../../ground/base/index.ts";

test("logs come line by line, of all containers, and no line is longer than people read", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  node.put(testPod({ containers: [testContainer("a"), testContainer("b")] }));
  const seen: unknown[] = [];
  node.copyLog = async ({ container, previous, follow, tailLines, hasTimes }, sink) => {
    seen.push({ container, previous, follow, tailLines, hasTimes });
    if (container === "b") throw new Error("it never ran");
    await sink(Buffer.from("T1 one\nT2 tw"));
    await sink(Buffer.from("o\nT3 "));
    for (let count = 0; count < 64; count++) await sink(Buffer.from("x".repeat(16 * 1024)));
  };
  const { text } = await served.ask("api/logs/uid-1?tail=7&previous");
  const lines = text.split("\n").filter((line) => line !== "");
  assert.ok(lines.includes("! b: it never ran"));
  assert.ok(lines.includes("0 T1 one") && lines.includes("0 T2 two"));
  const long = lines.find((line) => line.startsWith("0 T3")) ?? "";
  assert.match(long, /x … \d+ more bytes in this line$/);
  assert.ok(long.length < 20_000);
  assert.deepEqual(seen[0], { container: "a", previous: true, follow: false, tailLines: 7, hasTimes: true });
  const whole = await served.ask("api/logs/uid-1?container=a&download");
  assert.equal(whole.headers["content-disposition"], 'attachment; filename="web-a.log"');
  assert.ok(whole.text.length > 2 ** 20);
  // As the container wrote it.
  assert.deepEqual(seen.at(-1), {
    ...{ container: "a", previous: false, follow: false },
    ...{ tailLines: undefined, hasTimes: false },
  });
});

test("the ninth log is told that there are too many", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  node.put(testPod());
  node.copyLog = (_request, _sink, signal) => untilAborted(signal);
  const logs = await Promise.all(Array.from({ length: 8 }, () => served.open("api/logs/uid-1?follow")));
  assert.equal((await served.ask("api/logs/uid-1?follow")).status, 503);
  logs[0]?.destroy();
  await until("there is room again", async () => (await served.open("api/logs/uid-1?follow")).statusCode === 200);
});
