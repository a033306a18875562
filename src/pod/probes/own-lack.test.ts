import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { loadSyscalls } from "../../connections/host/index.ts";
import { systemClock } from "../../ground/base/index.ts";
import { isOwnLack } from "./http/dial-errors.ts";
import { requestHeaders } from "./http/headers.ts";
import { urlOf } from "./http/url.ts";
import { probeRunner } from "./run-probe.ts";
import { type ProbeTarget, probeUserAgent } from "./target.ts";

const never = new AbortController().signal;
const run = probeRunner(() => Promise.reject(new Error("no command was expected")), systemClock, {
  concurrency: 2,
  runtimeTimeoutMs: 120_000,
});

test("a node without descriptors can't probe, which is not the container's failure", async () => {
  const server = createServer((_, response) => response.end("well"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = urlOf("http", "127.0.0.1", port, "/");
  const targets: readonly ProbeTarget[] = [
    { type: "http", url, headers: requestHeaders([], probeUserAgent) },
    { type: "tcp", host: "127.0.0.1", port },
    { type: "grpc", host: "127.0.0.1", port, service: "" },
  ];
  // Whatever the probes load, and the server's side, is there before.
  for (const target of targets) await run(target, 300, never);
  const syscalls = await loadSyscalls();
  const before = syscalls.getOpenFileLimit();
  let free = 0;
  while (existsSync(`/proc/self/fd/${free}`)) free++;
  try {
    syscalls.setOpenFileLimit({ ...before, soft: BigInt(free) });
    for (const target of targets) {
      const outcome = await run(target, 5_000, never);
      assert.equal(outcome.type, "error", `${target.type}: ${JSON.stringify(outcome)}`);
      assert.match(outcome.type === "error" ? outcome.message : "", /too many open files/);
    }
  } finally {
    syscalls.setOpenFileLimit(before);
    server.close();
    server.closeAllConnections();
  }
});

for (const [code, address, isLack] of [
  ["EMFILE", "10.0.0.1", true],
  ["ENFILE", "10.0.0.1", true],
  ["ENOBUFS", "10.0.0.1", true],
  ["ENOMEM", "10.0.0.1", true],
  ["EADDRNOTAVAIL", "10.0.0.1", true],
  ["EADDRNOTAVAIL", "fd00::1", false],
  ["ECONNREFUSED", "10.0.0.1", false],
  ["ETIMEDOUT", "10.0.0.1", false],
  ["EHOSTUNREACH", "10.0.0.1", false],
] as const) {
  test(`${code} to ${address}: ${isLack ? "the node's" : "the container's"}`, () => {
    const error = Object.assign(new Error("connect"), { code, address });
    assert.equal(isOwnLack(address, error), isLack);
    assert.equal(isOwnLack(address, new AggregateError([error])), isLack);
  });
}
