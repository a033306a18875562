import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { DatagramReceiver } from "../../../test/support/datagram-receiver.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { systemClock } from "../../ground/base/index.ts";
import {
  acquireLockFile,
  claimDirectory,
  DirectoryInUseError,
  LockContention,
  loadSyscalls,
  makeShared,
  mountFlags,
  mountOf,
  notifySystemd,
  readMounts,
  SyscallError,
  unmountFlags,
} from "./index.ts";
import { setOpenFileLimit } from "./open-files.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-syscalls-"));
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

const never = new AbortController().signal;

/** Another process that holds a lock on the file or directory until its input ends. */
async function lockElsewhere(path: string): Promise<ChildProcess> {
  const script = `
    const koffi = require("koffi");
    const fd = require("fs").openSync(process.argv[1], "r");
    if (koffi.load(null).func("int flock(int, int)")(fd, 6) !== 0) process.exit(2);
    console.log("held");
    process.stdin.resume().on("end", () => process.exit(0));`;
  const child = spawn(process.execPath, ["-e", script, path], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  if (child.stdout === null) throw new Error("the child has no output");
  const [text] = await once(child.stdout, "data");
  assert.equal(String(text).trim(), "held");
  return child;
}

test("lock file: made with mode 0600 and held", async () => {
  const path = join(directory, "fresh.lock");
  let waited = false;
  const lock = await acquireLockFile(path, { clock: new FakeClock(), onWait: () => (waited = true) }, never);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(waited, false);
  lock[Symbol.dispose]();
});

test("lock file: waits while another process holds it, then gets it", async () => {
  const path = join(directory, "contended.lock");
  writeFileSync(path, "");
  const other = await lockElsewhere(path);
  let waits = 0;
  const onWait = () => {
    waits++;
    other.stdin?.end();
  };
  const lock = await acquireLockFile(path, { clock: systemClock, onWait }, never);
  assert.equal(waits, 1);
  lock[Symbol.dispose]();
});

test("lock file: the wait can be ended", async () => {
  const path = join(directory, "aborted.lock");
  writeFileSync(path, "");
  await lockElsewhere(path);
  const stop = new AbortController();
  const onWait = () => stop.abort(new Error("stopping"));
  await assert.rejects(acquireLockFile(path, { clock: systemClock, onWait }, stop.signal), /stopping/);
});

test("lock file: one that cannot be made is named", async () => {
  const path = join(directory, "absent", "x.lock");
  const lock = acquireLockFile(path, { clock: systemClock, onWait: () => {} }, never);
  await assert.rejects(lock, /unable to acquire file lock on ".*absent\/x.lock"/);
});

for (const [name, act] of [
  ["opens", (path: string) => `require("fs").openSync(${JSON.stringify(path)}, "r")`],
  ["deletes", (path: string) => `require("fs").unlinkSync(${JSON.stringify(path)})`],
] as const) {
  test(`contention: seen when another process ${name} the file`, async () => {
    const path = join(directory, `${name}.watched`);
    writeFileSync(path, "");
    let seen = false;
    const contended = (await LockContention.watch(path)).noticed(systemClock, never).then(() => {
      seen = true;
    });
    statSync(path);
    await systemClock.sleep(1, never);
    assert.equal(seen, false);
    const child = spawn(process.execPath, ["-e", act(path)]);
    await once(child, "exit");
    await contended;
  });
}

test("contention: the watch ends with its signal and leaves no timer", async () => {
  const path = join(directory, "quiet.watched");
  writeFileSync(path, "");
  const clock = new FakeClock();
  const stop = new AbortController();
  const watch = await LockContention.watch(path);
  const contended = assert.rejects(watch.noticed(clock, stop.signal), /enough/);
  await clock.advance(1_000);
  stop.abort(new Error("enough"));
  await contended;
  assert.equal(clock.pendingTimers, 0);
});

test("a directory has one agent at a time; the error names the process that holds it", async () => {
  const root = join(directory, "root");
  mkdirSync(root);
  const other = await lockElsewhere(root);
  await assert.rejects(claimDirectory(root), (error) => {
    assert.ok(error instanceof DirectoryInUseError);
    assert.equal(error.holder, other.pid);
    assert.match(error.message, new RegExp(`in use by another agent \\(process ${other.pid}\\)`));
    return true;
  });
  other.kill("SIGKILL");
  await once(other, "exit");
  for (let turn = 0; turn < 2; turn++) {
    using lock = await claimDirectory(root);
    assert.ok(lock);
    await assert.rejects(claimDirectory(root), DirectoryInUseError);
  }
});

for (const kind of ["path", "abstract"] as const) {
  test(`systemd: notices arrive on a socket with ${kind} name`, async () => {
    const name = kind === "path" ? join(directory, "notify.sock") : `@nodelet-test-${process.pid}`;
    await using receiver = await DatagramReceiver.listen(name);
    await notifySystemd(name, { ready: true, status: "two\nlines" });
    await notifySystemd(name, { watchdog: true });
    assert.deepEqual(receiver.received(), ["READY=1\nSTATUS=two lines", "WATCHDOG=1"]);
  });
}

for (const [name, socket, problem] of [
  ["nobody listens", join(directory, "nobody.sock"), /send to .*nobody.sock: .*ENOENT/],
  ["not a name", "vsock:2:1234", /NOTIFY_SOCKET "vsock:2:1234" is neither/],
  ["too long", `/${"x".repeat(120)}`, /has 122 bytes; unix sockets allow 107/],
] as const) {
  test(`systemd: ${name}`, async () => assert.rejects(notifySystemd(socket, { ready: true }), problem));
}

test("open files: the limit can be set to what it is; beyond what is allowed it is refused with both figures", async () => {
  const calls = await loadSyscalls();
  const { hard } = calls.getOpenFileLimit();
  await setOpenFileLimit(Number(hard));
  assert.deepEqual(calls.getOpenFileLimit(), { soft: hard, hard });
  await assert.rejects(
    setOpenFileLimit(2 ** 40),
    new RegExp(`Cannot set the limit of open files to ${2 ** 40}; it stays at ${hard} \\(at most ${hard}\\)`),
  );
});

const cannotMount = process.getuid?.() === 0 ? false : "mounting needs root";

test("mounts: a private directory becomes shared once, a shared one is left alone", { skip: cannotMount }, async () => {
  const calls = await loadSyscalls();
  const target = join(directory, "to-share");
  mkdirSync(target);
  calls.mount(target, target, "", mountFlags.bind);
  try {
    calls.mount("none", target, "", mountFlags.private);
    assert.equal(await makeShared(target), "made shared");
    try {
      assert.equal(mountOf(target, await readMounts())?.propagation.shared, true);
      assert.equal(await makeShared(target), "was shared");
    } finally {
      await calls.unmount(target, unmountFlags.detach);
    }
  } finally {
    await calls.unmount(target, unmountFlags.detach);
  }
});

test("mounts: a bind mount can be made read-only", { skip: cannotMount }, async () => {
  const calls = await loadSyscalls();
  const [source, target] = [join(directory, "source"), join(directory, "target")];
  mkdirSync(source);
  mkdirSync(target);
  calls.mount(source, target, "", mountFlags.bind);
  try {
    calls.mount("none", target, "", mountFlags.remount | mountFlags.bind | mountFlags.readOnly);
    assert.throws(() => writeFileSync(join(target, "x"), ""), /EROFS/);
    writeFileSync(join(source, "x"), "");
  } finally {
    await calls.unmount(target, 0);
  }
  await assert.rejects(
    calls.unmount(target, 0),
    (error) => error instanceof SyscallError && error.code === "EINVAL" && error.message.includes(target),
  );
});

test("mounts: the thread of the event loop does not free the memory of what is unmounted", {
  skip: cannotMount,
}, async () => {
  const calls = await loadSyscalls();
  const target = join(directory, "large");
  mkdirSync(target);
  calls.mount("tmpfs", target, "tmpfs", 0, "size=400m");
  // In small pieces, so that there is no memory of this process to be freed meanwhile.
  const piece = Buffer.alloc(1 << 20, 1);
  for (let written = 0; written < 300; written++) appendFileSync(join(target, "x"), piece);
  const [ownBefore, allBefore] = [ownThreadMicros(), process.cpuUsage().system];
  await calls.unmount(target, 0);
  const [own, all] = [ownThreadMicros() - ownBefore, process.cpuUsage().system - allBefore];
  assert.ok(own < all / 2, `${own} µs of this thread, ${all} µs in the kernel of all threads`);
});

/** Processor time of the thread that runs the event loop. */
function ownThreadMicros(): number {
  const [nanos] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return Number(nanos) / 1000;
}
