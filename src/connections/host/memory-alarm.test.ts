import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { until } from "../../../test/support/until.ts";
import { readCgroupLayout } from "./cgroups.ts";
import { openMemoryAlarm } from "./memory-alarm.ts";
import { onNews } from "./readiness.ts";
import { loadSyscalls } from "./syscalls.ts";

const layout = await readCgroupLayout();
const memoryMount = layout.version === 1 ? layout.mountPoints.get("memory") : undefined;
const mebibyte = 2 ** 20;

test("news of a descriptor are told each time, and not once it is nobody's concern", async () => {
  const calls = await loadSyscalls();
  const { reader, writer } = calls.openPipe();
  let told = 0;
  const watching = await onNews(reader, "readable", () => told++);
  for (let news = 1; news <= 3; news++) {
    writeFileSync(writer, "x");
    await until(`news number ${news} are told`, () => told === news);
  }
  watching[Symbol.dispose]();
  watching[Symbol.dispose]();
  writeFileSync(writer, "x");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(told, 3);
});

test("an agent without descriptors lives, and hears of news once it has some again", async () => {
  const program = `
    import { closeSync, openSync, writeFileSync } from "node:fs";
    import { onNews } from ${JSON.stringify(new URL("./readiness.ts", import.meta.url).href)};
    import { loadSyscalls } from ${JSON.stringify(new URL("./syscalls.ts", import.meta.url).href)};
    const { reader, writer } = (await loadSyscalls()).openPipe();
    const words = { 1: "without", 2: "with" };
    let told = 0;
    const watching = await onNews(reader, "readable", () => {
      console.log(words[++told]);
      while (held.length > 0) closeSync(held.pop());
      if (told === 1) setTimeout(() => writeFileSync(writer, "y"), 1);
      else watching[Symbol.dispose]();
    });
    const held = [];
    try { for (;;) held.push(openSync("/dev/null")); } catch {}
    writeFileSync(writer, "x");
    setTimeout(() => process.exit(1), 60_000).unref();
    const alive = setInterval(() => { if (told === 2) clearInterval(alive); }, 10);
  `;
  const limited = ["--nofile=200", process.execPath, "--import", "tsx", "--input-type=module", "-e", program];
  const child = spawn("prlimit", limited, { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  assert.deepEqual([output, code], ["without\nwith\n", 0]);
});

test("cgroup v1: the alarm goes off when usage passes the number that was set last", {
  skip: memoryMount === undefined,
}, async (t) => {
  const path = `/nodelet-alarm-${process.pid}`;
  const directory = `${memoryMount}${path}`;
  mkdirSync(directory);
  let told = 0;
  using alarm = await openMemoryAlarm(layout, path, () => told++);
  assert.equal(alarm.isSetByUsage, true);
  await alarm.set(1_000 * mebibyte);
  await alarm.set(100 * mebibyte);
  const child = spawn(process.execPath, ["-e", hungry], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  writeFileSync(`${directory}/cgroup.procs`, String(child.pid));
  child.stdin.write("eat\n");
  await once(child.stdout, "data");
  await until("the alarm goes off", () => told > 0);
  const ended = once(child, "exit");
  child.stdin.end();
  await ended;
  await until("it is told that there is enough again", () => told > 1);
  rmdirSync(directory);
});

/** Takes 200 MiB when told to, and ends with its input. */
const hungry = `process.stdin.once("data", () => { globalThis.held = Buffer.alloc(200 << 20, 1); console.log("ate"); });
process.stdin.on("end", () => process.exit());`;
