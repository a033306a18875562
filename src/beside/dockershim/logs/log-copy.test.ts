import assert from "node:assert/strict";
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { until } from "../../../../test/support/until.ts";
import { runTool } from "../../../connections/host/index.ts";
import { never, silentLogger, systemClock } from "../../../ground/base/index.ts";
import { CriLog } from "./cri-log.ts";
import { LogCopies } from "./log-copies.ts";

let second = 0;
/** A line as Docker writes it, each a second after the one before. */
function engineLine(text: string): string {
  second++;
  const time = new Date(1_700_000_000_000 + second * 1000).toISOString();
  return `${JSON.stringify({ log: `${text}\n`, stream: "stdout", time })}\n`;
}

async function withLog(
  work: (log: { source: string; target: string; texts: () => Promise<string[]> }) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "shim-log-"));
  const [source, target] = [join(directory, "json.log"), join(directory, "pod/main/0.log")];
  const texts = async (): Promise<string[]> => {
    const content = await readFile(target, "utf8").catch(() => "");
    return content
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split(" ").slice(3).join(" "));
  };
  try {
    await work({ source, target, texts });
  } finally {
    await rm(directory, { recursive: true });
  }
}

const ports = { clock: systemClock, log: silentLogger };

test("a log is carried over as it grows, through docker's rotation and ours, and is whole at the end", async () => {
  await withLog(async ({ source, target, texts }) => {
    await writeFile(source, engineLine("one"));
    await using copies = new LogCopies(ports);
    copies.ensure("a", { source, target });
    await until("the first line is there", async () => (await texts()).length === 1);
    await appendFile(source, engineLine("two"));
    await rename(source, `${source}.1`);
    await writeFile(source, engineLine("three"));
    await until("three lines are there", async () => (await texts()).length === 3);
    await rename(target, `${target}.20240101-000000`);
    assert.equal(await copies.reopen("a", never), true);
    await appendFile(source, engineLine("four"));
    await copies.finish("a", never);
    assert.deepEqual(await texts(), ["four"]);
  });
});

test("a shim that was killed goes on where it was: nothing twice, nothing lost, a torn line mended", async () => {
  await withLog(async ({ source, target, texts }) => {
    await writeFile(source, ["a", "b", "c"].map(engineLine).join(""));
    {
      await using copies = new LogCopies(ports);
      copies.ensure("a", { source, target });
      await copies.finish("a", never);
    }
    const whole = await readFile(target, "utf8");
    await writeFile(target, whole.slice(0, -5));
    await appendFile(source, engineLine("d"));
    {
      await using copies = new LogCopies(ports);
      copies.ensure("a", { source, target });
      await copies.finish("a", never);
    }
    assert.deepEqual(await texts(), ["a", "b", "c", "d"]);
    // Rotated, and killed before anything came into the new file.
    await rename(target, `${target}.20240101-000000`);
    await using copies = new LogCopies(ports);
    copies.ensure("a", { source, target });
    await appendFile(source, engineLine("e"));
    await copies.finish("a", never);
    assert.deepEqual(await texts(), ["e"]);
  });
});

test("also in the middle of a line of many parts, over docker's rotation", async () => {
  await withLog(async ({ source, target, texts }) => {
    const part = (index: number, end: string): string =>
      `${JSON.stringify({ log: `${index} ${"x".repeat(16_000)}${end}`, stream: "stdout", time: "2026-01-01T00:00:00.1Z" })}\n`;
    const parts = Array.from({ length: 150 }, (_, index) => part(index, index === 149 ? "\n" : ""));
    await writeFile(`${source}.1`, `${engineLine("before")}${parts.slice(0, 50).join("")}`);
    await writeFile(source, parts.slice(50, 120).join(""));
    for (const rest of ["", parts.slice(120).join("")]) {
      await appendFile(source, rest);
      await using copies = new LogCopies(ports);
      const copy = copies.ensure("a", { source, target });
      copy.finish();
      await copy.done;
    }
    const numbers = (await texts()).slice(1).map((line) => Number(line.split(" ")[0]));
    assert.deepEqual(
      numbers,
      Array.from({ length: 150 }, (_, index) => index),
    );
  });
});

test("where docker has thrown away what came after the last line, all that is left is carried over", async () => {
  await withLog(async ({ source, target, texts }) => {
    await writeFile(source, engineLine("old"));
    await using copies = new LogCopies(ports);
    copies.ensure("a", { source, target });
    await copies.finish("a", never);
    await writeFile(`${source}.1`, engineLine("new 1"));
    await rm(source);
    await writeFile(source, engineLine("new 2"));
    copies.ensure("a", { source, target });
    await copies.finish("a", never);
    assert.deepEqual(await texts(), ["old", "new 1", "new 2"]);
  });
});

test("a file that somebody has emptied is read from its beginning", async () => {
  await withLog(async ({ source, target, texts }) => {
    await writeFile(source, engineLine("a long line that was there before"));
    await using copies = new LogCopies(ports);
    copies.ensure("a", { source, target });
    await until("the first line is there", async () => (await texts()).length === 1);
    await truncate(source);
    await appendFile(source, engineLine("x"));
    await until("the second line is there", async () => (await texts()).includes("x"));
    await copies.finish("a", never);
    assert.equal((await texts()).length, 2);
  });
});

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };

test("a rotation while lines are being written, and then a full disk, leave whole lines only", needsRoot, async () => {
  await withLog(async ({ target }) => {
    const directory = dirname(target);
    await mkdir(directory, { recursive: true });
    await runTool("mount", ["-t", "tmpfs", "-o", "size=12m", "log", directory], never);
    try {
      await using log = new CriLog(target);
      await log.open();
      const line = `2026-01-01T00:00:00Z stdout F ${"x".repeat(969)}\n`;
      await rename(target, `${target}.20240101-000000`);
      const writing = log.write(line.repeat(6_000));
      await log.reopen();
      await writing;
      await log.write(line);
      await assert.rejects(log.write(line.repeat(8_000)), { code: "ENOSPC" });
      assert.equal(await readFile(target, "utf8"), line);
    } finally {
      await runTool("umount", ["-l", directory], never);
    }
  });
});

test("the log of a container that is gone holds on to no file, also where the disk is full", needsRoot, async () => {
  await withLog(async ({ source, target }) => {
    await writeFile(source, engineLine("x".repeat(10_000)));
    const directory = dirname(target);
    await mkdir(directory, { recursive: true });
    await runTool("mount", ["-t", "tmpfs", "-o", "size=8k", "log", directory], never);
    try {
      await using copies = new LogCopies(ports);
      copies.ensure("a", { source, target });
      const isOpen = async (): Promise<boolean> => {
        const links = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
        return (await Promise.all(links)).includes(source);
      };
      await until("the file is read", isOpen);
      copies.drop("a");
      await until("the file is let go", async () => !(await isOpen()));
    } finally {
      await runTool("umount", ["-l", directory], never);
    }
  });
});

test("a log that another shim made a link to docker's own file becomes a copy of it; docker's file stays", async () => {
  await withLog(async ({ source, target, texts }) => {
    const said = ["a", "b"].map(engineLine).join("");
    await writeFile(source, said);
    await mkdir(dirname(target), { recursive: true });
    await symlink(source, target);
    await using copies = new LogCopies(ports);
    copies.ensure("a", { source, target });
    await copies.finish("a", never);
    assert.deepEqual([await texts(), await readFile(source, "utf8")], [["a", "b"], said]);
  });
});

test("of a log that was never bounded the end is carried over, not as much again as fills the disk", async () => {
  await withLog(async ({ source, target, texts }) => {
    const many = Array.from({ length: 2_500 }, () => engineLine("x".repeat(16_000))).join("");
    await writeFile(source, `${many}${engineLine("the end")}`);
    await using copies = new LogCopies(ports);
    const copy = copies.ensure("a", { source, target });
    copy.finish();
    await copy.done;
    const found = await texts();
    assert.ok(found.length > 2_000 && found.length < 2_200, `${found.length} lines`);
    assert.equal(found.at(-1), "the end");
  });
});

test("a log in whose place there is a pipe that nobody reads keeps no other log waiting", async () => {
  await withLog(async ({ source, target, texts }) => {
    await writeFile(source, Array.from({ length: 200 }, () => engineLine("x".repeat(1_000))).join(""));
    await mkdir(dirname(target), { recursive: true });
    const piped = ["1", "2"].map((name) => join(dirname(target), `${name}.log`));
    // The last one has the name of a rotated log.
    for (const path of [...piped, `${target}.x`]) await runTool("mkfifo", [path], never);
    await using copies = new LogCopies(ports);
    for (const path of [...piped, target]) copies.ensure(path, { source, target: path });
    const finished = [...piped, target].map((path) => copies.finish(path, never));
    await Promise.all(finished);
    await until("all of it is there", async () => (await texts()).length === 200);
    for (const path of piped) assert.ok((await readFile(path, "utf8")).length > 200_000);
  });
});
