import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import koffi from "koffi";
import { isThere } from "../../../ground/base/index.ts";
import { HostFiles } from "./files.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-doctor-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const files = new HostFiles();

function made(name: string, mode: number, text = "x"): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test("mode and owner of a file", async () => {
  const path = made("plain", 0o640);
  chownSync(path, 12, 34);
  assert.deepEqual(await files.fact(path), { path, state: "there", mode: 0o640, uid: 12, gid: 34 });
});

test("a link, as kubeadm's kubelet-client-current.pem, is judged by where it leads", async () => {
  made("kubelet-client-2026.pem", 0o644);
  const path = join(directory, "kubelet-client-current.pem");
  symlinkSync("kubelet-client-2026.pem", path);
  assert.deepEqual(await files.fact(path), {
    path,
    state: "there",
    mode: 0o644,
    uid: process.getuid?.(),
    gid: process.getgid?.(),
    linkTo: "kubelet-client-2026.pem",
  });
});

test("absent, and what can't be looked at", async () => {
  assert.equal((await files.fact(join(directory, "no"))).state, "absent");
  const loop = join(directory, "loop");
  symlinkSync("loop", loop);
  const found = await files.fact(loop);
  assert.equal(found.state, "unreadable");
});

/** Version 2; entries of tag, permission bits and id, each little-endian: what setfacl -m u:1000:r writes. */
function acl(): Buffer {
  const entries = [
    [0x01, 6, 0xffffffff],
    [0x02, 4, 1000],
    [0x04, 0, 0xffffffff],
    [0x10, 4, 0xffffffff],
    [0x20, 0, 0xffffffff],
  ] as const;
  const bytes = Buffer.alloc(4 + entries.length * 8);
  bytes.writeUInt32LE(2);
  for (const [index, [tag, bits, id]] of entries.entries()) {
    bytes.writeUInt16LE(tag, 4 + index * 8);
    bytes.writeUInt16LE(bits, 6 + index * 8);
    bytes.writeUInt32LE(id, 8 + index * 8);
  }
  return bytes;
}

test("somebody who is let in by an ACL shows in the bits of the group", async () => {
  const path = made("with-acl", 0o600);
  const libc = koffi.load(
    (await isThere("/lib/x86_64-linux-gnu/libc.so.6")) ? "/lib/x86_64-linux-gnu/libc.so.6" : "libc.so.6",
  );
  const setxattr = libc.func(
    "int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)",
  );
  assert.equal(
    setxattr(path, "system.posix_acl_access", acl(), acl().length, 0),
    0,
    "the file system of tests has no ACLs",
  );
  const found = await files.fact(path);
  assert.equal(found.state === "there" ? found.mode & 0o777 : 0, 0o640);
});

test("no more than asked for is read", async () => {
  assert.equal(await files.text(made("long", 0o600, "abcdef"), 3), "abc");
});

test("a pipe is refused and not waited for", async () => {
  const path = join(directory, "pipe");
  const mkfifo = koffi.load("libc.so.6").func("int mkfifo(const char *path, unsigned int mode)");
  assert.equal(mkfifo(path, 0o600), 0);
  await assert.rejects(files.text(path), /is not a regular file/);
});

test("names of a directory, a few of them, and none where there is no directory", async () => {
  const path = join(directory, "names");
  mkdirSync(path);
  for (const name of ["b", "a", "c"]) writeFileSync(join(path, name), "");
  assert.deepEqual(await files.names(path), ["a", "b", "c"]);
  assert.equal((await files.names(path, 2)).length, 2);
  assert.deepEqual(await files.names(join(directory, "none")), []);
});

test("what a process has mounted of a file server is not touched", async () => {
  const machine = join(directory, "machine");
  mkdirSync(join(machine, "proc/7/root/srv"), { recursive: true });
  mkdirSync(join(machine, "proc/7/root/etc"), { recursive: true });
  writeFileSync(join(machine, "proc/7/root/etc/own.conf"), "");
  symlinkSync("/srv/far/proxy.conf", join(machine, "proc/7/root/etc/proxy.conf"));
  writeFileSync(
    join(machine, "proc/7/mountinfo"),
    "1 0 0:90 / / rw - overlay overlay rw\n2 1 0:91 / /srv/far rw - nfs4 server:/share rw\n",
  );
  const found = new HostFiles(machine);
  assert.equal(await found.within(7, "/etc/own.conf"), "/proc/7/root/etc/own.conf");
  for (const path of ["/srv/far/proxy.conf", "/etc/proxy.conf", "/etc/../srv/far"]) {
    await assert.rejects(found.within(7, path), /lies on \/srv\/far, which may wait for another machine/);
  }
});
