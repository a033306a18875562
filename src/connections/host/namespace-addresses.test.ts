import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { readAddressesOf } from "./namespace-addresses.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "making a namespace needs root" };

/** A process in a network namespace of its own, with an interface eth0; `and`: what else is done there. */
async function withNamespace(and: string, work: (pid: number) => void): Promise<void> {
  const script = `ip link set lo up && ip link add eth0 type veth peer name other && ip link set other up && ip link set eth0 up && ${and} && echo ready && exec sleep 1000`;
  const child = spawn("unshare", ["--net", "sh", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await once(child.stdout, "data");
    work(child.pid ?? 0);
  } finally {
    child.kill("SIGKILL");
    await once(child, "close");
  }
}

for (const { name, and, want } of [
  {
    name: "of both families, among those of another interface",
    and: "ip addr add 10.7.0.9/24 dev other && ip addr add 10.8.0.5/24 dev eth0 && ip addr add fd00::5/64 dev eth0 nodad",
    want: ["10.8.0.5", "fd00::5"],
  },
  {
    name: "without a network of its own",
    and: "ip addr add 10.8.0.5/32 dev eth0 && ip route add 169.254.1.1 dev eth0",
    want: ["10.8.0.5"],
  },
  { name: "none", and: "true", want: [] },
]) {
  test(`addresses in another network namespace: ${name}`, needsRoot, async () => {
    await withNamespace(and, (pid) => assert.deepEqual(readAddressesOf(pid, "eth0"), want));
  });
}

test("a process that is gone has no addresses", () => assert.deepEqual(readAddressesOf(2 ** 30, "eth0"), []));
