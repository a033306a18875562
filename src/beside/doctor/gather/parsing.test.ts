import assert from "node:assert/strict";
import { test } from "node:test";
import { lossOver } from "./disk.ts";
import { iptablesVersion } from "./iptables.ts";
import { inHostsFile } from "./names.ts";
import { parseRoutes } from "./network.ts";
import { isExcepted, overlaps } from "./proxy.ts";
import { parseInfo, pluginsIn } from "./runtime.ts";

test("iptables says its version and back end", () => {
  assert.deepEqual(iptablesVersion("iptables v1.8.9 (nf_tables)\n"), { version: "1.8.9", mode: "nf_tables" });
  assert.deepEqual(iptablesVersion("iptables v1.6.1\n"), { version: "1.6.1", mode: undefined });
  assert.equal(iptablesVersion("busybox"), undefined);
});

test("routes of /proc/net/route", () => {
  const head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";
  const lines =
    "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\ncni0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
  assert.deepEqual(parseRoutes(head + lines), [
    { to: "0.0.0.0/0", through: "eth0" },
    { to: "10.244.0.0/16", through: "cni0" },
  ]);
});

for (const [a, b, do_] of [
  ["10.244.0.0/16", "10.244.3.0/24", true],
  ["10.244.0.0/16", "10.245.0.0/16", false],
  ["10.0.0.0/8", "10.244.0.0/16", true],
  ["fd00::/8", "10.0.0.0/8", false],
] as const) {
  test(`${a} and ${b} ${do_ ? "overlap" : "are apart"}`, () => assert.equal(overlaps(a, b), do_));
}

test("the rate of a disk needs ten minutes of history", () => {
  const at = 1_000_000_000_000;
  const history = [
    { at, availableBytes: 5_000_000 },
    { at: at + 1_000_000, availableBytes: 4_000_000 },
  ];
  assert.equal(lossOver(history), 1_000);
  assert.equal(lossOver(history.slice(0, 1)), undefined);
  assert.equal(
    lossOver([
      { at, availableBytes: 1 },
      { at: at + 60_000, availableBytes: 0 },
    ]),
    undefined,
  );
});

test("names in a hosts file, without those in comments", () => {
  const hosts = "127.0.0.1 localhost\n10.0.0.7 Node-1 n1 # old\n#10.0.0.8 node-1\n";
  assert.deepEqual(inHostsFile(hosts, "node-1"), ["10.0.0.7"]);
  assert.deepEqual(inHostsFile(hosts, "old"), []);
});

test("what containerd says of itself, and what it says that is no JSON", () => {
  const info = parseInfo(
    JSON.stringify({
      containerd: { defaultRuntimeName: "runc", runtimes: { runc: { options: { SystemdCgroup: true } } } },
      sandboxImage: "pause:3",
      cni: { confDir: "/etc/cni/net.d", binDir: "/opt/cni/bin" },
    }),
  );
  assert.deepEqual(info, {
    sandboxImage: "pause:3",
    cniConfDir: "/etc/cni/net.d",
    cniBinDirs: ["/opt/cni/bin"],
    cgroupDriver: "systemd",
  });
  for (const odd of [undefined, "", "{", "[]", '{"cni":{"binDirs":[1,"/b"]}}'])
    assert.equal(parseInfo(odd).sandboxImage, undefined);
});

test("plugins of a network; a path is nobody's plugin", () => {
  assert.deepEqual(pluginsIn('{"plugins":[{"type":"bridge"},{"type":"../../bin/sh"}]}'), ["bridge"]);
  assert.deepEqual(pluginsIn('{"type":"ptp"}'), ["ptp"]);
  assert.deepEqual(pluginsIn("no json"), []);
});

for (const [except, host, is] of [
  ["10.0.0.0/8,.example.com", "10.1.2.3", true],
  [".example.com", "api.example.com", true],
  ["example.com", "badexample.com", false],
  ["", "127.0.0.1", true],
  ["", "10.0.0.1", false],
  ["*", "10.0.0.1", true],
] as const) {
  test(`NO_PROXY=${except} ${is ? "excepts" : "does not except"} ${host}`, () =>
    assert.equal(isExcepted(except, host), is));
}
