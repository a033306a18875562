// What the checks say of a runtime that is not in order.
import { but, testChecks } from "../../../../test/support/doctor-checks.ts";

testChecks([
  [
    "no runtime",
    "runtime.answers",
    "fail",
    /ENOENT/,
    () => ({ runtime: { state: "silent", endpoint: "unix:///x", problem: "ENOENT", isDenied: false } }),
  ],
  [
    "no runtime: the rest is no question",
    "runtime.cni",
    "n/a",
    /does not answer/,
    () => ({ runtime: { state: "silent", endpoint: "unix:///x", problem: "ENOENT", isDenied: false } }),
  ],
  [
    "a runtime that another user may not ask",
    "runtime.answers",
    "unknown",
    /answers root only/,
    () => ({ runtime: { state: "silent", endpoint: "unix:///x", problem: "EACCES", isDenied: true } }),
  ],
  [
    "an agent that another user may not ask",
    "agent.answers",
    "unknown",
    /answers root only/,
    () => ({ agent: { state: "silent", socket: "/x", problem: "EACCES", isDenied: true } }),
  ],
  ["an old runtime", "runtime.version", "warn", /no longer looked after/, but("runtime", { version: "1.6.20~ds1" })],
  [
    "another cgroup driver",
    "runtime.cgroup-driver",
    "fail",
    /cgroupDriver is cgroupfs, but the runtime uses systemd/,
    but("runtime", { cgroupDriver: undefined, configuredDriver: "systemd" }),
  ],
  [
    "no network",
    "runtime.ready",
    "fail",
    /NetworkReady is false: no cni/,
    but("runtime", { conditions: [{ type: "NetworkReady", status: false, message: "no cni" }] }),
  ],
  [
    "a sandbox image that this release can't pin",
    "runtime.sandbox-image",
    "pass",
    /can't pin images/,
    but("runtime", { version: "1.6.20~ds1", sandboxImage: { name: "p:1", isThere: true, isPinned: false } }),
  ],
  [
    "an image that may go",
    "runtime.sandbox-image",
    "warn",
    /not pinned/,
    but("runtime", { sandboxImage: { name: "pause", isThere: true, isPinned: false } }),
  ],
  [
    "a plugin that is not there",
    "runtime.cni",
    "fail",
    /wants bridge/,
    but("runtime", { cni: { configDir: "/c", configs: ["10.conf"], missingPlugins: ["bridge"], binDirs: ["/b"] } }),
  ],
  [
    "shims without a sandbox",
    "runtime.shims",
    "warn",
    /1 shims have no sandbox: abc/,
    but("runtime", { strayShims: ["abc"] }),
  ],
  [
    "a full disk of images",
    "runtime.disk",
    "fail",
    /left below \/i/,
    but("runtime", { imageDisk: { path: "/i", availableBytes: 1e9, capacityBytes: 100e9 } }),
  ],
]);
