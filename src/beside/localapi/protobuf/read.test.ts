import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { StatusError } from "../status-error.ts";
import { readProtobuf } from "./read.ts";

type Fill = (writer: BinaryWriter) => BinaryWriter;

const message =
  (number: number, fill: Fill): Fill =>
  (writer) =>
    fill(writer.tag(number, WireType.LengthDelimited).fork()).join();
const text =
  (number: number, value: string): Fill =>
  (writer) =>
    writer.tag(number, WireType.LengthDelimited).string(value);
const integer =
  (number: number, value: number): Fill =>
  (writer) =>
    writer.tag(number, WireType.Varint).int64(value);
const all =
  (...fills: readonly Fill[]): Fill =>
  (writer) =>
    fills.reduce((written, fill) => fill(written), writer);

/** What a typed client sends for an object. */
function sent(apiVersion: string, kind: string, fill: Fill): Buffer {
  const raw = fill(new BinaryWriter()).finish();
  const envelope = all(message(1, all(text(1, apiVersion), text(2, kind))), (writer) =>
    writer.tag(2, WireType.LengthDelimited).bytes(raw),
  );
  return Buffer.concat([Buffer.from("k8s\0"), envelope(new BinaryWriter()).finish(), Buffer.from([0x1a, 0, 0x22, 0])]);
}

test("a config map with text and bytes", () => {
  const entry = (key: string, value: string): Fill => all(text(1, key), text(2, value));
  const body = sent(
    "v1",
    "ConfigMap",
    all(
      message(1, text(1, "settings")),
      message(2, entry("a", "1")),
      message(2, entry("b", "")),
      message(3, entry("c", "x")),
    ),
  );
  assert.deepEqual(readProtobuf(body), {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings" },
    data: { a: "1", b: "" },
    binaryData: { c: "eA==" },
  });
});

test("what was not set is not there, and a zero that was set is", () => {
  // Clients write every plain field, zero or not: namespace, hostNetwork and the creation time here.
  const metadata = message(1, all(text(1, "web"), text(3, ""), integer(7, 0), message(8, all())));
  const spec = message(2, all(integer(4, 0), integer(11, 0), integer(21, 0), text(10, "")));
  assert.deepEqual(readProtobuf(sent("v1", "Pod", all(metadata, spec))), {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: { terminationGracePeriodSeconds: 0, automountServiceAccountToken: false },
  });
});

test("quantities, ports by number and name, times, negative numbers, fields of inlined types", () => {
  const quantity = message(2, all(text(1, "memory"), message(2, text(1, "64Mi"))));
  const port = (fill: Fill): Fill => message(2, message(2, message(2, fill)));
  const byNumber = message(10, all(message(1, port(integer(2, 8080))), integer(2, -1)));
  const byName = message(11, message(1, port(all(integer(1, 1), text(3, "http")))));
  const container = message(2, all(text(1, "main"), message(8, quantity), byNumber, byName));
  const volume = message(1, all(text(1, "tmp"), message(2, message(2, text(1, "Memory")))));
  const metadata = message(1, message(9, all(integer(1, 1_700_000_000), integer(2, 5000))));
  const read = readProtobuf(sent("v1", "Pod", all(metadata, message(2, all(volume, container)))));
  assert.deepEqual(read["metadata"], { deletionTimestamp: "2023-11-14T22:13:20Z" });
  assert.deepEqual(read["spec"], {
    volumes: [{ name: "tmp", emptyDir: { medium: "Memory" } }],
    containers: [
      {
        name: "main",
        resources: { requests: { memory: "64Mi" } },
        livenessProbe: { httpGet: { port: 8080 }, initialDelaySeconds: -1 },
        readinessProbe: { httpGet: { port: "http" } },
      },
    ],
  });
});

test("options of a deletion, which belong to every group", () => {
  const body = sent("policy/v1", "DeleteOptions", all(integer(1, 5), message(2, text(1, "u"))));
  assert.deepEqual(readProtobuf(body), {
    apiVersion: "policy/v1",
    kind: "DeleteOptions",
    gracePeriodSeconds: 5,
    preconditions: { uid: "u" },
  });
});

test("lists as the values of a map", () => {
  const extra = message(6, all(text(1, "scopes"), message(2, all(text(1, "one"), text(1, "two")))));
  const body = sent("certificates.k8s.io/v1", "CertificateSigningRequest", message(2, extra));
  assert.deepEqual(readProtobuf(body)["spec"], { extra: { scopes: ["one", "two"] } });
});

for (const { title, body, wanted } of [
  { title: "JSON", body: Buffer.from("{}"), wanted: /not a Kubernetes object/ },
  { title: "cut off", body: sent("v1", "Pod", message(1, text(1, "web"))).subarray(0, 20), wanted: /not protobuf/ },
  {
    title: "of an unknown kind",
    body: sent("v1", "Frob", all()),
    wanted: /no kind "Frob" is registered for version "v1"/,
  },
  {
    title: "with a key that would reach too far",
    body: sent("v1", "ConfigMap", message(2, all(text(1, "__proto__"), text(2, "x")))),
    wanted: /no field may be named __proto__/,
  },
]) {
  test(`a body ${title} is refused as a bad request`, () => {
    assert.throws(
      () => readProtobuf(body),
      (error) => error instanceof StatusError && error.code === 400 && wanted.test(error.message),
    );
  });
}
