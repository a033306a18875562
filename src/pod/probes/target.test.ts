import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, ContainerId, PodUid } from "../../ground/model/index.ts";
import { needsPodIp, ProbeTargetError, resolvePort, targetOf } from "./target.ts";

const container: Container = {
  name: "web",
  ports: [
    { name: "http", containerPort: 8080 },
    { name: "9000", containerPort: 9001 },
  ],
  env: [
    { name: "FLAG", value: "first" },
    { name: "FLAG", value: "on" },
    { name: "SECRET", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
  ],
};
const id = "c1" as ContainerId;
const at = (podIp: string) => ({ pod: "u1" as PodUid, id, podIp });

for (const [wanted, port] of [
  [80, 80],
  ["http", 8080],
  ["81", 81],
  ["9000", 9001],
] as const) {
  test(`port ${JSON.stringify(wanted)} is ${port}`, () => assert.equal(resolvePort(wanted, container), port));
}

for (const [wanted, message] of [
  [0, "invalid port number: 0"],
  [65536, "invalid port number: 65536"],
  ["70000", "invalid port number: 70000"],
  ["none", 'strconv.Atoi: parsing "none": invalid syntax'],
] as const) {
  test(`port ${JSON.stringify(wanted)} is refused`, () => {
    assert.throws(
      () => resolvePort(wanted, container),
      (error) => error instanceof ProbeTargetError && error.message === message,
    );
  });
}

test("exec expands literal env values; others are empty, unknown names stay", () => {
  const command = ["sh", "$(FLAG)", "[$(SECRET)]", "$(OTHER)", "$$(FLAG)"];
  assert.deepEqual(targetOf({ exec: { command } }, container, at("")), {
    type: "exec",
    pod: "u1",
    id,
    command: ["sh", "on", "[]", "$(OTHER)", "$(FLAG)"],
  });
});

test("httpGet goes to the pod unless it names a host", () => {
  const target = targetOf({ httpGet: { port: "http", path: "/x?y", scheme: "HTTPS" } }, container, at("10.0.0.1"));
  assert.ok(target.type === "http");
  assert.equal(target.url.text, "https://10.0.0.1:8080/x?y");
  assert.deepEqual(target.headers, {
    host: undefined,
    fields: [
      ["User-Agent", "kube-probe/1.34"],
      ["Accept", "*/*"],
    ],
  });
  const named = targetOf({ httpGet: { port: 1, host: "db" } }, container, at("10.0.0.1"));
  assert.ok(named.type === "http" && named.url.text === "http://db:1/");
});

test("tcpSocket and grpc", () => {
  assert.deepEqual(targetOf({ tcpSocket: { port: "http" } }, container, at("fd00::1")), {
    type: "tcp",
    host: "fd00::1",
    port: 8080,
  });
  assert.deepEqual(targetOf({ tcpSocket: { port: 1, host: "db" } }, container, at("")), {
    type: "tcp",
    host: "db",
    port: 1,
  });
  assert.deepEqual(targetOf({ grpc: { port: 5 } }, container, at("10.0.0.1")), {
    type: "grpc",
    host: "10.0.0.1",
    port: 5,
    service: "",
  });
});

test("a probe without an action cannot be carried out", () => {
  assert.throws(() => targetOf({}, container, at("")), /missing probe handler for web/);
});

for (const [name, probe, needed] of [
  ["exec", { exec: { command: [] } }, false],
  ["httpGet", { httpGet: { port: 1 } }, true],
  ["httpGet with host", { httpGet: { port: 1, host: "db" } }, false],
  ["tcpSocket", { tcpSocket: { port: 1 } }, true],
  ["tcpSocket with host", { tcpSocket: { port: 1, host: "db" } }, false],
  ["grpc", { grpc: { port: 1 } }, true],
] as const) {
  test(`${name} ${needed ? "needs" : "does not need"} the pod's address`, () => {
    assert.equal(needsPodIp(probe), needed);
  });
}
